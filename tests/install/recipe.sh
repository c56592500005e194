# In the source's directory:
scripts/wheels

# In the directory with dist/, as root; again for an upgrade:
umask 022
/usr/bin/python3 -m venv /opt/boinc_gahp
rm -rf /opt/boinc_gahp/wheels
mkdir /opt/boinc_gahp/wheels
tar -xf dist/boinc_gahp-*.tar -C /opt/boinc_gahp/wheels
/opt/boinc_gahp/bin/pip install --no-index --find-links /opt/boinc_gahp/wheels boinc_gahp
/opt/boinc_gahp/bin/pip install --no-index --force-reinstall --no-deps /opt/boinc_gahp/wheels/boinc_gahp-*.whl
ln -sfn /opt/boinc_gahp/bin/boinc_gahp /usr/local/bin/boinc_gahp

# Settings; edit the copies, which an upgrade leaves alone. The last two are for HTCondor 10 and later.
mkdir -p /etc/boinc_gahp
[ -e /etc/boinc_gahp/boinc_gahp.toml ] || cp $(boinc_gahp files)/boinc_gahp.toml /etc/boinc_gahp/
for name in 20-boinc_gahp.condor.conf zz-boinc_gahp.router.conf; do
    [ -e /etc/condor/config.d/$name ] || cp $(boinc_gahp files)/$name /etc/condor/config.d/
done

# Completion in shells, and manual pages:
mkdir -p /usr/local/share/bash-completion/completions
mkdir -p /usr/local/share/zsh/site-functions /etc/fish/completions
boinc_gahp completion bash > /usr/local/share/bash-completion/completions/boinc_gahp
boinc_gahp completion zsh > /usr/local/share/zsh/site-functions/_boinc_gahp
boinc_gahp completion fish > /etc/fish/completions/boinc_gahp.fish
mkdir -p /usr/local/share/man/man1 /usr/local/share/man/man5
cp /opt/boinc_gahp/share/man/man1/boinc_gahp.1 /usr/local/share/man/man1/
cp /opt/boinc_gahp/share/man/man5/boinc_gahp.toml.5 /usr/local/share/man/man5/
