"""``boinc_gahp login``: saves an account of a project in the settings, and checks it."""

from __future__ import annotations

import getpass
import re
import sys
import warnings
from typing import TYPE_CHECKING

from boinc_gahp import errors
from boinc_gahp.config.accounts import authenticator_of, find_project, named_projects
from boinc_gahp.config.layers import load
from boinc_gahp.config.urls import ProjectUrl, are_one_project
from boinc_gahp.config.writing import account_entry
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.site import about, key_of, must_be_private
from boinc_gahp.secret import Authenticator
from boinc_gahp.terminal.output import agreed, command_line
from boinc_gahp.terminal.parsing import Parser, common_words
from boinc_gahp.terminal.words import one_line
from boinc_gahp.text import printable

if TYPE_CHECKING:
    from argparse import Namespace

    from boinc_gahp.config.writing import AccountEntry
    from boinc_gahp.rpc.types import ProjectInfo

#: Numbers of lookup_account.php (``web-rpcs.rst``, "Pages for programs").
_NO_SUCH_ACCOUNT = -136
_WRONG_PASSWORD = -206

#: A key that can do nothing but attach computers: the account's number, and an MD5.
_WEAK_KEY = re.compile(r"[0-9]+_[0-9a-f]{32}")
#: More is no key, nor a password; a file that was named by mistake is not read whole.
_LONGEST_LINE = 1000

_DESCRIPTION = """\
Saves your account of a project in the settings, so that jobs can be sent to it. It asks for the
account key, which the project's web site shows under "Account keys" on your account page. With
--email it asks for your password instead. What you type is not shown. The project must know the
key.

The project's address and the key are written into a file that only you can read, in
~/.config/boinc_gahp/projects.d: default.toml for the first project, which is the default one, and
NAME.toml for others; with --project NAME other commands use these. Other settings stay as they are.
Passwords are not stored. At the end it checks the project as "boinc_gahp check" does.

Where people log in through LDAP, with the name and password of their institution, take the key:
that password is not asked for.
"""


def run(options: Namespace) -> int:
    """Save an account; return 0, or 1 if a check has failed."""
    url = ProjectUrl(options.url)
    settings = load(options.config)
    same = [each for _, each in named_projects(settings) if are_one_project(each.url, url)]
    # Time limits that people wait for, and the certificates and proxy of the settings.
    network = ClientOptions.for_people(settings, same[0] if same else None)
    with WebRpcs(url, "", options=network) as project:
        info = _told(project)
        url = _best_url(project, info)
        has_ldap = info is not None and info.has_ldap
        if options.email is not None:
            if has_ldap and "@" not in options.email:
                raise errors.ConfigError(_ldap(url))
            must_be_private(url)
        _say_where(url, info)
        with WebRpcs(url, "", options=network) as best:
            best.ping()
        entry = account_entry(load(environ={}), settings, url, options.name)
        key = _key(options, entry)
        if isinstance(key, str):
            key = _looked_up(options.email, key, url, network, has_ldap=has_ldap)
    has_right = _verify(url, key, network)
    _ask_to_replace(options, entry, key)
    entry.write(key)
    print(f"Saved: {entry.section} in {entry.file}, which only you can read")
    return _check(options, entry, key, has_right=has_right)


def run_parser() -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "login",
        _DESCRIPTION,
        examples=(
            "boinc_gahp login https://boinc.example.edu/test/",
            "boinc_gahp login https://boinc.example.edu/test/ --email ada@example.edu",
            "boinc_gahp login https://boinc.example.org/sim/ --name sim --stdin < key.txt",
        ),
        statuses={1: "an error, with nothing saved; or the account is saved, but a check failed"},
    )
    parser.takes(
        {
            "URL": "the project's address, as volunteers use it",
            "--name NAME": "save it as [projects.NAME]; with NAME default as the default project, "
            "[project] (default: the name that it has already; for a new one [project]; if that is "
            "another project, a name made of the address)",
            "--email ADDRESS": "ask for the password of the account with this e-mail address, "
            "instead of its key; only over https",
            "--stdin": "read the key, or with --email the password, from the first line of "
            "standard input",
            "--replace": "replace another account of the project without asking",
        }
    )
    return parser.with_common()


# -- the project


def _told(project: WebRpcs) -> ProjectInfo | None:
    """Return what the project says of itself; None if it does not answer that page.

    Raises:
        TransportError: it does not answer at all.
    """
    try:
        return about(project)
    except errors.RpcError as error:
        if isinstance(error, errors.TransportError) and error.status is None:
            raise
        return None


def _best_url(project: WebRpcs, info: ProjectInfo | None) -> ProjectUrl:
    """Return the project's address, with https if the project has that."""
    if project.https_url is not None:
        return ProjectUrl(project.https_url)
    for text in () if info is None else (info.web_rpc_url_base, info.master_url):
        try:
            other = ProjectUrl(text)
        except errors.BadRequest:
            continue
        if other.startswith("https:") and are_one_project(other, project.url):
            return other
    return project.url


def _say_where(url: ProjectUrl, info: ProjectInfo | None) -> None:
    name = printable(info.name) if info is not None else ""
    print(f"Project: {name} ({url})" if name else f"Project: {url}")
    if not url.is_private:
        print("It has no https: anybody on the network path can read the account key.")


# -- the account


def _key(options: Namespace, entry: AccountEntry) -> Authenticator | str:
    """Return the key that the user gives; with ``--email`` the password."""
    if options.email is not None:
        return _secret(options, f"Password of {one_line(options.email)}: ")
    if not options.stdin:
        print(
            f'Your account key is on {entry.url}weak_auth.php (log in there; or follow "Account '
            'keys" on your account page). It is the first key there, not the weak one.'
        )
    text = _secret(options, "Account key: ").strip()
    what = None
    if not text:
        what = "it is empty"
    elif "@" in text:
        what = "it looks like an e-mail address: use --email ADDRESS to give a password"
    elif _WEAK_KEY.fullmatch(text):
        what = (
            "it is the weak account key, which can only attach computers: take the other key, of "
            "32 letters and digits"
        )
    elif len(text.split()) > 1 or not (text.isascii() and text.isprintable()):
        what = "it is not one word of ASCII characters"
    if what is not None:
        # The text itself may be a password.
        raise errors.ConfigError(f"that is no account key: {what}")
    return Authenticator(text)


def _secret(options: Namespace, prompt: str) -> str:
    """Return a line that is not shown while it is typed."""
    if options.stdin:
        line = sys.stdin.readline(_LONGEST_LINE)
        if not line:
            raise errors.ConfigError("standard input is empty: its first line must be the secret")
        return line.rstrip("\r\n")
    if not sys.stdin.isatty():
        raise errors.ConfigError(
            "standard input is not a terminal, so nobody can be asked: use --stdin to read the "
            "account key, or with --email the password, from it"
        )
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Without a way to hide what is typed, nothing is asked.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(prompt)
        except (EOFError, getpass.GetPassWarning) as error:
            raise errors.ConfigError("nothing was typed; nothing is saved") from error


def _ldap(url: ProjectUrl) -> str:
    """Return which way in people have whose accounts are in a directory of their institution.

    With the name and the password there, lookup_account.php would tell the key, too; but both would
    stand in its address, and so in the project's access log.
    """
    return (
        f"people log in to {url} through LDAP, and that password is not asked for here: log in on "
        f"{url}weak_auth.php, copy the account key, and give it to "
        f"{command_line(['boinc_gahp', 'login', url])}"
    )


def _looked_up(
    email: str, password: str, url: ProjectUrl, network: ClientOptions, *, has_ldap: bool
) -> Authenticator:
    with WebRpcs(url, "", options=network) as project:
        try:
            return key_of(project, email, password)
        except errors.ProjectError as error:
            what = {
                _NO_SUCH_ACCOUNT: f"has no account with the e-mail address {one_line(email)}",
                _WRONG_PASSWORD: f"does not accept this password for {one_line(email)}",
            }.get(error.number)
            if what is None:
                raise
            way = f"check both on {url}login_form.php, or log in with the account key instead"
            told = f"{error.host} {what}: {_ldap(url) if has_ldap else way}"
            raise errors.BadAuthenticator.of(error, told) from None


def _verify(url: ProjectUrl, key: Authenticator, network: ClientOptions) -> bool:
    """Return whether the account may submit; the project must know it.

    Raises:
        BadAuthenticator: it does not.
    """
    with WebRpcs(url, key, options=network) as project:
        try:
            project.query_batches()
        except errors.NoSubmitAccess:
            return False
        except errors.BadAuthenticator as error:
            raise errors.BadAuthenticator.of(
                error,
                f"{error.host} does not know this account key: copy it again from "
                f"{url}weak_auth.php; nothing is saved",
            ) from None
    return True


def _ask_to_replace(options: Namespace, entry: AccountEntry, key: Authenticator) -> None:
    if entry.present is None or entry.present == key or options.replace:
        return
    what = f"{entry.section} of the settings has another account"
    if options.stdin or not sys.stdin.isatty():
        raise errors.ConfigError(
            f"{what}: use --replace to replace it, or --name NAME to add this one"
        )
    if not agreed(f"{what}. Replace it?", sys.stdout):
        raise errors.ConfigError(f"nothing is saved: {what}")


# -- afterwards


def _check(options: Namespace, entry: AccountEntry, key: Authenticator, *, has_right: bool) -> int:
    from boinc_gahp.cli.check import print_checks
    from boinc_gahp.cli.check.checks import Level

    settings = load(options.config)
    try:
        _, project = find_project(settings, entry.name)
        is_used = project.url == entry.url and authenticator_of(settings, project) == key
    except errors.ConfigError:
        is_used = False
    if not is_used:
        later = settings.project_files[entry.name][-1]
        raise errors.ConfigError(
            f"the account is saved in {entry.file}, but not used, since {later} is read later and "
            f"has another {entry.section}: change it there; or, if BOINC_GAHP_CONFIG or --config "
            "names that file, go on without that"
        )
    print()
    points = print_checks(options.config, entry.name or None)
    if has_right:
        more = common_words(entry.name, options.config)
        print(f"The project's apps: {command_line(['boinc_gahp', 'apps', *more])}")
    else:
        print(
            "The account is known, but may not submit jobs yet: ask the project's admin for the "
            'right. The documentation, "Your first real project", has a letter that asks for it.'
        )
    return 1 if Level.FAILED in {each.level for each in points} else 0
