rm -r /opt/boinc_gahp
rm /usr/local/bin/boinc_gahp
rm /etc/condor/config.d/20-boinc_gahp.condor.conf
rm /usr/local/share/bash-completion/completions/boinc_gahp
rm /usr/local/share/zsh/site-functions/_boinc_gahp /etc/fish/completions/boinc_gahp.fish
rm /usr/local/share/man/man1/boinc_gahp.1 /usr/local/share/man/man5/boinc_gahp.toml.5
