# SPDX-License-Identifier: BSD-2-Clause
#
# dashboard.py TEXT FOLDER PAGE: see dashboard.
# dashboard.py --text TEXT: the lines of a text follow the grammar of the format
# dashboard.py --expressions FOLDER: the expressions of the dashboard, one a line, without variables

import json
import re
import sys

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
LABELS = rf'{NAME}="(?:[^"\\\n]|\\[n"\\])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABELS}(?:,{LABELS})*)\}})? (\d+(?:\.\d+)?(?:e[+-]\d+)?)")
# of Prometheus itself
OWN_LABELS = {"alertname", "alertstate", "instance", "job", "severity"}
failed = False


def wrong(text):
    global failed
    print("WRONG:", text)
    failed = True


def read_text(path):
    """The families and labels of a text, whose lines follow the grammar of the format."""
    families, labels, helps, series = {}, set(), set(), set()
    family = None
    with open(path, encoding="utf-8", newline="\n") as file:
        text = file.read()
    if not text.endswith("\n"):
        wrong("the last line has no end")
    for line in text.splitlines():
        if match := re.fullmatch(rf"# HELP ({NAME}) ((?:[^\\]|\\[n\\])+)", line):
            if match[1] in helps:
                wrong(f"twice: {line}")
            helps.add(match[1])
        elif match := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge)", line):
            family = match[1]
            if family in families or family not in helps:
                wrong(f"a second TYPE, or no HELP: {line}")
            families[family] = 0
        elif match := SAMPLE.fullmatch(line):
            if match[1] != family:
                wrong(f"not of the family {family}: {line}")
            families[family] += 1
            if line.rpartition(" ")[0] in series:
                wrong(f"a series twice: {line}")
            series.add(line.rpartition(" ")[0])
            labels.update(re.findall(rf"({NAME})=\"", re.sub(r'"(?:[^"\\]|\\.)*"', '"', match[2] or "")))
        else:
            wrong(f"no line of the format: {line}")
    return families, labels


def check(what, expression, metrics, labels):
    """An expression, or a text with expressions."""
    for name in re.findall(r"infiniband_[a-zA-Z0-9_:]+", expression):
        if name not in metrics:
            wrong(f"{what}: nothing has the metric {name}")
    used = re.findall(r"\.Labels\.(\w+)|\$labels\.(\w+)|\{\{(\w+)\}\}", expression)
    names = {name for match in used for name in match if name}
    for names_of in re.findall(r"(?:by|on|without|group_left)\s*\(([^()]*)\)", expression):
        names.update(re.findall(r"\w+", names_of))
    for matchers in re.findall(r"infiniband_[\w:]+\{([^{}]*)\}", expression):
        names.update(re.findall(r"(\w+)\s*[!=]", re.sub(r'"[^"]*"', '"', matchers)))
    for name in names - labels:
        wrong(f"{what}: nothing has the label {name}")


def targets_of(dashboard):
    return [(panel, target) for panel in dashboard["panels"] for target in panel["targets"]]


def check_dashboard(dashboard, metrics, labels):
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    seen = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        place = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        if at["x"] + at["w"] > 24 or place & seen:
            wrong(f"{panel['title']}: there is no room for it")
        seen |= place
        references = [target["refId"] for target in panel["targets"]]
        if len(set(references)) != len(references):
            wrong(f"{panel['title']}: two targets with one refId")
    if len({panel["id"] for panel in dashboard["panels"]}) != len(dashboard["panels"]):
        wrong("two panels with one id")
    for panel, target in targets_of(dashboard):
        check(panel["title"], target["expr"] + " " + target.get("legendFormat", ""), metrics, labels)
    for variable in re.findall(r"\$\{?(\w+)", json.dumps(dashboard)):
        if variable not in variables | {"__all"}:
            wrong(f"there is no variable {variable}")


def check_faults(path, families):
    """The text has both faults of the simulated fabric, and an escaped name."""
    for needed in "infiniband_unreachable_node", "infiniband_duplicate_guid":
        if not families.get(needed):
            wrong(f"{needed} has no series")
    with open(path, encoding="utf-8") as file:
        if 'node="leaf\\\\3"' not in file.read():
            wrong("the backslash of a name is not escaped")


def main():
    if sys.argv[1] == "--text":
        families, _ = read_text(sys.argv[2])
        sys.exit(failed or not families)
    with open(sys.argv[2] + "/grafana-dashboard.json", encoding="utf-8") as file:
        dashboard = json.load(file)
    if sys.argv[1] == "--expressions":
        for _, target in targets_of(dashboard):
            print(target["expr"].replace("$node", ".*"))
        return
    families, labels = read_text(sys.argv[1])
    check_faults(sys.argv[1], families)
    labels |= OWN_LABELS
    metrics = set(families)
    with open(sys.argv[2] + "/infiniband.rules.yml", encoding="utf-8") as file:
        rules = re.sub(r"(?m)^ *(#|- name:).*", "", file.read())
    metrics |= set(re.findall(r"- record: (\S+)", rules))
    check("rules", rules, metrics, labels)
    check_dashboard(dashboard, metrics, labels)
    with open(sys.argv[3], encoding="utf-8") as file:
        page = re.sub(r"grep .*|subsystem-match=\w+", "", file.read())
    check("monitor.md", page, metrics, labels)
    alerts = re.findall(r"- alert: (\S+)", rules)
    rows = re.findall(r"(?m)^\| (`Infiniband.*?) \|", page)
    if sorted(alerts) != sorted(re.findall(r"`(\w+)`", " ".join(rows))):
        wrong("the table of monitor.md does not have the alerts of the rules")
    print(f"{len(metrics)} metrics, {len(alerts)} alerts, {len(targets_of(dashboard))} expressions of the dashboard")
    sys.exit(failed)


main()
