"""The command line: a module or a package for each command."""

#: Each command's module, and its purpose. A module's ``run(arguments, config)`` does the work and
#: returns the exit status.
COMMANDS = {
    "apps": ("boinc_gahp.cli.apps", "list the project's apps, and what is known of each"),
    "batch": (
        "boinc_gahp.cli.batch",
        "submit jobs, watch them, and fetch outputs, without HTCondor",
    ),
    "check": ("boinc_gahp.cli.check", "check the settings, project, account, apps and HTCondor"),
    "completion": ("boinc_gahp.cli.completion", "print a shell completion script"),
    "demo": ("boinc_gahp.cli.demo", "run 20 jobs from start to end on a local project"),
    "ledger": ("boinc_gahp.cli.ledger", "list and manage the jobs that came from HTCondor"),
    "local-project": (
        "boinc_gahp.localproject.commands",
        "create and run a BOINC project on this machine",
    ),
    "login": ("boinc_gahp.cli.login", "save your account of a project in the settings"),
    "template": ("boinc_gahp.cli.template", "check job templates for errors"),
}
