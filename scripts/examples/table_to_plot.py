"""From a table of parameters to a plot: ``params.csv`` has the columns seed and points."""

from pathlib import Path

from boinc_gahp import Project, jobs_from

try:
    import matplotlib.pyplot as plt
    import pandas as pd
except ImportError as error:
    raise SystemExit(f"{error}: pip install matplotlib pandas") from None

with Project.from_settings() as project:
    jobs = jobs_from("params.csv", args="--seed {seed} --points {points}")
    batch = project.submit("pi", jobs, name="pi-scan", progress=True)
    batch.wait(progress=True).fetch("results", progress=True)
    table = pd.DataFrame(batch.to_records())
table["pi"] = [float(Path(folder, "pi.txt").read_text()) for folder in table["folder"]]
table.plot.scatter("points", "pi", logx=True, title=f"{len(table)} jobs")
plt.savefig("pi.png")
