"""Exit statuses that BOINC's client reports instead of a program's own.

The client reports one number for each failed instance. It is the program's own exit status; or, if
the program crashed or could not run, one of the client's, or of Windows (``lib/error_numbers.h``;
``client/app_control.cpp``, handle_exited_app).
"""

from __future__ import annotations

ERR_FOPEN = -108
ERR_FILE_TOO_BIG = -131
ERR_NOT_FOUND = -161
ERR_RESULT_START = -185
ERR_RESULT_DOWNLOAD = -186
ERR_RESULT_UPLOAD = -187
EXIT_SIGNAL = 193
EXIT_ABORTED_BY_CLIENT = 194
EXIT_CHILD_FAILED = 195
EXIT_DISK_LIMIT_EXCEEDED = 196
EXIT_TIME_LIMIT_EXCEEDED = 197
EXIT_MEM_LIMIT_EXCEEDED = 198
EXIT_CLIENT_EXITING = 199
EXIT_UNSTARTED_LATE = 200
EXIT_MISSING_COPROC = 201
EXIT_ABORTED_BY_PROJECT = 202
EXIT_ABORTED_VIA_GUI = 203
EXIT_OUT_OF_MEMORY = 205

#: Their meanings, for people.
MEANINGS = {
    ERR_FOPEN: "an output file could not be read",
    ERR_FILE_TOO_BIG: "an output file is larger than the app's output template allows (max_nbytes)",
    ERR_NOT_FOUND: "an output file was missing",
    ERR_RESULT_START: "the program could not be started",
    ERR_RESULT_DOWNLOAD: "an input file could not be downloaded",
    ERR_RESULT_UPLOAD: "an output file could not be uploaded",
    EXIT_SIGNAL: "a signal ended the program: it crashed",
    EXIT_ABORTED_BY_CLIENT: "the BOINC client aborted it",
    EXIT_CHILD_FAILED: "the program that the app ran has failed",
    EXIT_DISK_LIMIT_EXCEEDED: "it used more disk than allowed",
    EXIT_TIME_LIMIT_EXCEEDED: "it ran for longer than allowed",
    EXIT_MEM_LIMIT_EXCEEDED: "it used more memory than allowed",
    EXIT_UNSTARTED_LATE: "it had not begun when its deadline came",
    EXIT_ABORTED_BY_PROJECT: "the project aborted it",
    EXIT_ABORTED_VIA_GUI: "the volunteer aborted it",
    EXIT_OUT_OF_MEMORY: "it ran out of memory",
    -1073741819: "the program crashed on Windows: access violation",
    -1073741515: "the program lacks a DLL on Windows",
    -1073740940: "the program crashed on Windows: heap corruption",
    -1073741571: "the program crashed on Windows: stack overflow",
}

#: The program was not run, or somebody stopped it: this says nothing about the program.
NOT_RUN = {
    ERR_RESULT_START,
    ERR_RESULT_DOWNLOAD,
    EXIT_ABORTED_BY_CLIENT,
    EXIT_CLIENT_EXITING,
    EXIT_UNSTARTED_LATE,
    EXIT_MISSING_COPROC,
    EXIT_ABORTED_BY_PROJECT,
    EXIT_ABORTED_VIA_GUI,
    # Of clients before version 7.
    *(-195, -197, -221, -232, -233, -234),
}
