# The other scripts source this in the project's root directory. It makes the environment $venv
# (.venv) and installs what is missing there. If nothing is missing, it changes nothing and needs no
# network. With oldest=--oldest it installs the oldest releases that setup.cfg allows.
venv=.venv
oldest=
pythons="python3 python3.14 python3.13 python3.12 python3.11 python3.10"

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

is_supported() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

# Prints a Python that can make the environment: $PYTHON, or the first supported one.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_supported "$PYTHON" || fail "PYTHON is $PYTHON; Python 3.10 to 3.14 is needed"
        echo "$PYTHON"
        return
    fi
    for python in $pythons; do
        if is_supported "$python"; then
            echo "$python"
            return
        fi
    done
    fail "Python 3.10 to 3.14 is needed; on Debian: apt install python3 python3-venv"
}

make_environment() {
    if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import pip' 2>/dev/null; then
        is_supported "$venv/bin/python" ||
            fail "$venv has a Python other than 3.10 to 3.14; remove $venv and try again"
        return
    fi
    python=$(find_python) || exit 1
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python cannot make virtual environments; on Debian: apt install python3-venv"
    echo "Making a virtual environment in $venv"
    # An interrupted attempt leaves a directory without pip; --clear empties it.
    "$python" -m venv --clear "$venv" || fail "the virtual environment could not be made"
}

# install_extra NAME...: installs boinc_gahp and the requirements of its extras NAME from setup.cfg.
# pip gets the options in $install_options.
install_extra() {
    make_environment
    # shellcheck disable=SC2086  # none, or one word
    if missing=$("$venv/bin/python" scripts/missing_requirements.py $oldest "$@"); then
        [ -n "$missing" ] || return 0
    else
        fail "the requirements could not be compared with what is installed"
    fi
    echo "Installing into $venv: $(printf %s "$missing" | tr '\n' ' ')"
    [ -z "$oldest" ] || echo "$missing" >"$venv/constraints.txt"
    # shellcheck disable=SC2086  # none, or several words
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet --quiet \
        ${install_options:-} ${oldest:+--constraint "$venv/constraints.txt"} \
        --editable ".[$(echo "$*" | tr ' ' ',')]" ||
        fail "pip could not install boinc_gahp; see above"
}
