# In the source's directory, as root; again for an upgrade:
umask 022
/usr/bin/python3 -m venv /opt/boinc_gahp
rm -rf /opt/boinc_gahp/wheel
/opt/boinc_gahp/bin/pip wheel --no-deps --wheel-dir /opt/boinc_gahp/wheel .
/opt/boinc_gahp/bin/pip install /opt/boinc_gahp/wheel/boinc_gahp-*.whl
/opt/boinc_gahp/bin/pip install --force-reinstall --no-deps /opt/boinc_gahp/wheel/boinc_gahp-*.whl
ln -sfn /opt/boinc_gahp/bin/boinc_gahp /usr/local/bin/boinc_gahp

# Settings; edit the copies, which an upgrade leaves alone. The last two are for HTCondor 10 and later.
mkdir -p /etc/boinc_gahp
[ -e /etc/boinc_gahp/boinc_gahp.toml ] || cp conf/boinc_gahp.toml /etc/boinc_gahp/
for name in 20-boinc_gahp.condor.conf zz-boinc_gahp.router.conf; do
    [ -e /etc/condor/config.d/$name ] || cp conf/$name /etc/condor/config.d/
done

# Completion in shells:
mkdir -p /usr/local/share/bash-completion/completions
mkdir -p /usr/local/share/zsh/site-functions /etc/fish/completions
boinc_gahp completion bash > /usr/local/share/bash-completion/completions/boinc_gahp
boinc_gahp completion zsh > /usr/local/share/zsh/site-functions/_boinc_gahp
boinc_gahp completion fish > /etc/fish/completions/boinc_gahp.fish

# Manual pages:
scripts/docs man
mkdir -p /usr/local/share/man/man1 /usr/local/share/man/man5
cp build/man/boinc_gahp.1 /usr/local/share/man/man1/
cp build/man/boinc_gahp.toml.5 /usr/local/share/man/man5/
