r"""Conversations of real gridmanagers (``gridmanager-*.rst``), as data.

``-> `` what the gridmanager sends (CR LF is added), ``<- `` what it must get (LF is added), ``!! ``
a Result Line that a worker queues at that point. The bracketed names are those of the runs.
"""

from boinc_gahp.gahp.banner import VERSION_TEXT

START = r"""
<- $GahpVersion: 1.0.2 Nov 21 2026 BOINC\ GAHP\ 0.1.0 $
-> COMMANDS
<- S ASYNC_MODE_OFF ASYNC_MODE_ON BLAH_JOB_CANCEL BLAH_JOB_REFRESH_PROXY BLAH_JOB_STATUS BLAH_JOB_SUBMIT BLAH_PING BOINC_ABORT_JOBS BOINC_FETCH_OUTPUT BOINC_PING BOINC_QUERY_BATCHES BOINC_RETIRE_BATCH BOINC_SELECT_PROJECT BOINC_SET_LEASE BOINC_SUBMIT COMMANDS QUIT RESPONSE_PREFIX RESULTS VERSION
-> RESPONSE_PREFIX GAHP:
<- S
-> ASYNC_MODE_ON
<- GAHP:S
"""  # noqa: E501

BASIC = r"""
-> BOINC_SELECT_PROJECT http://127.0.0.1:8001/test 0123456789abcdef
<- GAHP:S
-> BOINC_SUBMIT 2 condor#vm#uppercase#1795261016 uppercase 1 condor#vm#uppercase#1795261016#1.0 0 1 /home/alice/t/in.txt in.txt NULL NULL NULL NULL NULL NULL
<- GAHP:S
!! 2 NULL
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:2 NULL
-> BOINC_SET_LEASE 3 condor#vm#uppercase#1795261016 1795282616
<- GAHP:S
-> BOINC_PING 4
<- GAHP:S
-> BOINC_QUERY_BATCHES 5 0 1 condor#vm#uppercase#1795261016
<- GAHP:S
!! 3 NULL
<- GAHP:R
!! 4 NULL
!! 5 NULL 1795261323.469543 1 condor#vm#uppercase#1795261016#1.0 DONE
-> RESULTS
<- GAHP:S 3
<- GAHP:3 NULL
<- GAHP:4 NULL
<- GAHP:5 NULL 1795261323.469543 1 condor#vm#uppercase#1795261016#1.0 DONE
-> RESULTS
<- GAHP:S 0
-> BOINC_QUERY_BATCHES 6 1795261323.469543 1 condor#vm#uppercase#1795261016
<- GAHP:S
-> BOINC_FETCH_OUTPUT 7 condor#vm#uppercase#1795261016#1.0 /home/alice/t job.err ALL 0
<- GAHP:S
!! 7 NULL 3 12.5 11.75
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:7 NULL 3 12.5 11.75
-> BOINC_RETIRE_BATCH 8 condor#vm#uppercase#1795261016
<- GAHP:S
"""  # noqa: E501

#: [args]: an empty argument is two spaces; blanks, backslashes and line ends are escaped.
ARGUMENTS = (
    '-> BOINC_SUBMIT 2 b app 2 b#1.10 5 one\\ two back\\\\slash dq"x  last 0 '
    "b#1.9 2 line\\\nend cr\\\r\\\nlf 2 /home/a/in\\ put in /home/a/x x "
    "1e12 86400.0 NULL NULL  12\n<- GAHP:S\n"
)

#: [oldargs]: the same name twice; a source with a path; a name with a space.
FETCH_SOME = r"""
-> BOINC_FETCH_OUTPUT 7 b#1.0 /home/alice/t job.err SOME 4 out1.txt renamed\ one.txt res/out2.txt out2.txt job.out job.out job.err job.err
<- GAHP:S
"""  # noqa: E501

#: [late], [rm3], [queryerr], [nobatch], [nobatch_trail], [fetcherr].
SEVERAL = r"""
-> BOINC_QUERY_BATCHES 8 0 2 A B
<- GAHP:S
-> BOINC_ABORT_JOBS 9 A#1.0
<- GAHP:S
-> BOINC_ABORT_JOBS 10 A#1.1 A#1.2
<- GAHP:S
!! 9 NULL
<- GAHP:R
!! 8 no\ batch\ named\ B
-> RESULTS
<- GAHP:S 2
<- GAHP:9 NULL
<- GAHP:8 no\ batch\ named\ B
!! 10 no\ answer
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:10 no\ answer
"""

#: ``gridmanager-batch.rst``, "Start-up" and "Life of a job": what HTCondor 10 and later says after
#: START.
BATCH = r"""
-> BLAH_PING 2 boinc
<- GAHP:S
!! 2 0 NULL
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:2 0 NULL
-> BLAH_JOB_SUBMIT 3 [\ In\ =\ "in.txt";\ Cmd\ =\ "/home/alice/t1/app.sh";\ Err\ =\ "job.1.0.err";\ Iwd\ =\ "/home/alice/t1";\ Out\ =\ "job.1.0.out";\ Queue\ =\ "projqueue";\ gridtype\ =\ "boinc";\ Arguments\ =\ "one\ two'\ 'words\ \\"dq\\"\ its\ $ENV\ back\\\\slash\ semi;colon\ br]ack[et";\ BoincApp2\ =\ "viaremote";\ GPUNumber\ =\ 1;\ Environment\ =\ "DQ=\\"z\\"\ FOO=bar\ Q=x''''y\ SP=a'\ 'b";\ BatchProject\ =\ "einstein";\ BatchRuntime\ =\ 7200;\ GridResource\ =\ "batch\ boinc";\ JobDirectory\ =\ "home_bl_127.0.0.1_19618_vm_1.0_1795261016";\ RequestMemory\ =\ 512;\ TransferInput\ =\ "a.dat,in\ data.dat,dirin/";\ CERequirements\ =\ Custom\ ==\ "hello\ world"\ &&\ BoincApp\ ==\ "uppercase";\ TransferOutput\ =\ "out1.dat,out2.dat";\ BatchExtraSubmitArgs\ =\ "--app\ foo\ --delay-bound\ 86400";\ TransferOutputRemaps\ =\ "out1.dat=results/out1_1.dat;out2.dat=/home/alice/x2.dat"\ ]
<- GAHP:S
!! 3 0 NULL boinc/0a1b2c3d.1
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:3 0 NULL boinc/0a1b2c3d.1
-> BLAH_JOB_STATUS 4 boinc/0a1b2c3d.1
<- GAHP:S
!! 4 0 NULL 1 [\ ]
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:4 0 NULL 1 [\ ]
-> BLAH_JOB_STATUS 5 boinc/0a1b2c3d.2
<- GAHP:S
!! 5 1 there\ is\ no\ such\ job\ [BG-GAHP] 0 [\ ]
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:5 1 there\ is\ no\ such\ job\ [BG-GAHP] 0 [\ ]
-> BLAH_JOB_REFRESH_PROXY 6 boinc/0a1b2c3d.1 /tmp/x509up_u1000
<- GAHP:S
!! 6 0 NULL
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:6 0 NULL
-> BLAH_JOB_CANCEL 7 boinc/0a1b2c3d.1
<- GAHP:S
!! 7 0 NULL
<- GAHP:R
-> RESULTS
<- GAHP:S 1
<- GAHP:7 0 NULL
"""  # noqa: E501

#: The ad of that conversation without its escapes.
BATCH_AD = r"""[ In = "in.txt"; Cmd = "/home/alice/t1/app.sh"; Err = "job.1.0.err"; Iwd = "/home/alice/t1"; Out = "job.1.0.out"; Queue = "projqueue"; gridtype = "boinc"; Arguments = "one two' 'words \"dq\" its $ENV back\\slash semi;colon br]ack[et"; BoincApp2 = "viaremote"; GPUNumber = 1; Environment = "DQ=\"z\" FOO=bar Q=x''''y SP=a' 'b"; BatchProject = "einstein"; BatchRuntime = 7200; GridResource = "batch boinc"; JobDirectory = "home_bl_127.0.0.1_19618_vm_1.0_1795261016"; RequestMemory = 512; TransferInput = "a.dat,in data.dat,dirin/"; CERequirements = Custom == "hello world" && BoincApp == "uppercase"; TransferOutput = "out1.dat,out2.dat"; BatchExtraSubmitArgs = "--app foo --delay-bound 86400"; TransferOutputRemaps = "out1.dat=results/out1_1.dat;out2.dat=/home/alice/x2.dat" ]"""  # noqa: E501

#: What no gridmanager sends, in the middle of what it does.
NONSENSE = r"""
-> boinc_ping 2
<- GAHP:S
-> BOINC_PING 0
<- GAHP:E
->  VERSION
<- GAHP:E
-> 
<- GAHP:E
-> BOINC_PING
<- GAHP:E
-> BOINC_SUBMIT 3 b app 2 j 0 0
<- GAHP:E
-> version
<- GAHP:S $GahpVersion: 1.0.2 Nov 21 2026 BOINC\ GAHP\ 0.1.0 $
"""  # noqa: W291

CONVERSATIONS = {
    "basic": START + BASIC,
    "arguments": START + ARGUMENTS,
    "fetch some": START + FETCH_SOME,
    "several": START + SEVERAL,
    "nonsense": START + NONSENSE,
    "batch": START + BATCH,
}
CONVERSATIONS = {
    name: text.replace(r"$GahpVersion: 1.0.2 Nov 21 2026 BOINC\ GAHP\ 0.1.0 $", VERSION_TEXT)
    for name, text in CONVERSATIONS.items()
}
