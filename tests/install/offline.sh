/usr/bin/python3 -m venv wheels/venv
wheels/venv/bin/pip wheel --wheel-dir wheels/boinc_gahp .

/usr/bin/python3 -m venv /opt/boinc_gahp
/opt/boinc_gahp/bin/pip install --no-index --find-links wheels/boinc_gahp boinc_gahp
ln -sfn /opt/boinc_gahp/bin/boinc_gahp /usr/local/bin/boinc_gahp
