rm -f /etc/condor/config.d/20-boinc_gahp.condor.conf /etc/condor/config.d/zz-boinc_gahp.router.conf
rm -rf /opt/boinc_gahp
rm -f /usr/local/bin/boinc_gahp
rm -f /usr/local/share/bash-completion/completions/boinc_gahp
rm -f /usr/local/share/zsh/site-functions/_boinc_gahp /etc/fish/completions/boinc_gahp.fish
rm -f /usr/local/share/man/man1/boinc_gahp.1 /usr/local/share/man/man5/boinc_gahp.toml.5
