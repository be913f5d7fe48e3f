"""500 commands while the broker is killed 30 times and the daemon is killed 30 times: what came of each.

python tests/bench/storm.py [--commands 500] [--kills 30] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:1] = [str(TESTS.parent), str(TESTS)]  # not this folder, where a file would be taken for our package daemon

from conftest import import_default_voice
from simulators.storm import Storm


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--commands", type=int, default=500)
    arguments.add_argument("--kills", type=int, default=30)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = Storm(Path(folder), import_default_voice(), options.commands).run(
            broker_kills=options.kills, daemon_kills=options.kills
        )
    found = {
        "commands": len(outcome.finals),
        "sent": outcome.sent,
        "broker_kills": outcome.broker_kills,
        "daemon_kills": outcome.daemon_kills,
        "ends": dict(outcome.kinds),
        "with_one_final_event": sum(len(ends) == 1 for ends in outcome.finals.values()),
        "spoken_twice": sum(count > 1 for count in outcome.spoken.values()),
        "finished_and_not_spoken": sum(
            '"finished"' in next(iter(ends), "") and outcome.spoken[command_id] != 1
            for command_id, ends in outcome.finals.items()
        ),
        "seconds": round(outcome.seconds),
    }
    if options.json:
        print(json.dumps(found))
    else:
        for what, figure in found.items():
            print(f"{what}: {figure}")


if __name__ == "__main__":
    main()
