"""Score CarRacing's expert, and record its demonstrations.

    python benchmarks/car_expert.py score --noise 0.2 --episodes 50 --diary score-0.2.jsonl
    python benchmarks/car_expert.py record --noise 0.2 --episodes 20 --diary demonstrations-0.2.jsonl
    python benchmarks/car_expert.py extend --noise 0.2 --episodes 20 --diary demonstrations-0.2.jsonl
    python benchmarks/car_expert.py redraw --noise 0.2
    python benchmarks/car_expert.py reference

Everything is executed and scored in Gymnasium's own environment, whose drawing is left out: the expert looks at the
state, and frames are drawn when demonstrations are played. A diary lets an interrupted run continue; `extend` first
fills it with the episodes that are bundled. `redraw` hashes the bundled ones again after the renderer has changed.
`reference` lays the scores of all noise levels beside those of a random agent on the same tracks, for
`rhirl.experiments.references`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from references import keep
from rhirl.demos import Metadata, run_episode
from rhirl.demos.recordings import record, write_recordings
from rhirl.experiments.agents import RandomAgent
from rhirl.experiments.driver import DrivingExpert
from rhirl.experiments.evaluate import evaluate
from rhirl.experiments.seeds import DEMONSTRATION, REFERENCE, episode_seeds
from rhirl.simulators.car_racing import CarRacingSimulator
from rhirl.tasks.car_racing import CAR_RACING, car_recordings

NOISES = (0.0, 0.2, 0.5)


def drive_all(seeds: list[int], noise: float, diary: Path) -> list[dict[str, Any]]:
    """Drive one episode per seed, and keep each in a diary from which an interrupted run goes on."""
    done = [json.loads(line) for line in diary.read_text().splitlines()] if diary.exists() else []
    env, expert = CAR_RACING.make_scored_env(), DrivingExpert(threads=1)
    for seed in seeds[len(done) :]:
        began = time.process_time()
        episode = run_episode(env, expert, horizon=CAR_RACING.T, noise=noise, seed=seed)
        racing: Any = env.unwrapped
        done.append(
            {
                "seed": seed,
                "return": episode.total,
                "steps": len(episode.controls),
                "tiles": len(racing.road),
                "missed": len(racing.road) - racing.tile_visited_count,
                "cpu_s": round(time.process_time() - began, 1),
                "controls": episode.controls.tolist(),
            }
        )
        with open(diary, "a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print({key: value for key, value in done[-1].items() if key != "controls"}, flush=True)
    return done[: len(seeds)]


def score(noise: float, episodes: int, diary: Path, out: Path) -> None:
    """Write the expert's returns on tracks of its own."""
    drives = drive_all(episode_seeds(REFERENCE, 0, episodes), noise, diary)
    returns = np.array([drive["return"] for drive in drives])
    result = {
        "task": CAR_RACING.name,
        "noise": noise,
        "episodes": episodes,
        "return_mean": returns.mean(),
        "return_std": returns.std(),
        "return_min": returns.min(),
        "finished": sum(drive["missed"] == 0 for drive in drives),
        "steps_mean": float(np.mean([drive["steps"] for drive in drives])),
        "paper_expert": CAR_RACING.paper["expert"][f"{noise:g}"],
        "driving": asdict(DrivingExpert().driving),
        "drives": [{key: value for key, value in drive.items() if key != "controls"} for drive in drives],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"σ = {noise:g}: {returns.mean():.1f} ± {returns.std():.1f}")


def demonstrate(noise: float, episodes: int, diary: Path) -> None:
    """Write the recording that is bundled."""
    drives = drive_all(episode_seeds(DEMONSTRATION, 0, episodes), noise, diary)
    meta = Metadata(
        task=CAR_RACING.name,
        env_id=CAR_RACING.env_id,
        noise=noise,
        returns=tuple(drive["return"] for drive in drives),
        seeds=tuple(drive["seed"] for drive in drives),
        source="DrivingExpert, MPPI on the true reward",
        versions={package: version(package) for package in CAR_RACING.packages},
    )
    controls = [np.array(drive["controls"], np.float32) for drive in drives]
    path = CAR_RACING.demonstrations_path(noise)
    write_recordings(record(controls, meta, CarRacingSimulator(threads=1).play, horizon=CAR_RACING.T), path)
    print(f"{path.name}: {os.path.getsize(path)} bytes, {np.mean(meta.returns):.1f}")


def begin_with_bundled(noise: float, diary: Path) -> None:
    """Enter the bundled episodes into a new diary."""
    bundled = car_recordings(noise)
    episodes = zip(bundled.meta.returns, bundled.meta.seeds, strict=True)
    lines = [
        json.dumps({"seed": seed, "return": total, "controls": bundled.episode(i)[1].tolist()})
        for i, (total, seed) in enumerate(episodes)
    ]
    diary.write_text("".join(line + "\n" for line in lines))


def redraw(noise: float) -> None:
    """Replace the hashes of the bundled episodes by those of what is drawn now."""
    old = car_recordings(noise)
    controls = [old.episode(i)[1] for i in range(len(old))]
    new = record(controls, old.meta, CarRacingSimulator(threads=1).play, horizon=CAR_RACING.T)
    write_recordings(new, CAR_RACING.demonstrations_path(noise))
    print(f"{(new.digests != old.digests).any(axis=1).sum()} of {len(old)} episodes look different")


def reference() -> None:
    """Keep what the expert and a random agent achieve on the same tracks, as benchmarks/references.py does."""
    scored = {f"{noise:g}": json.loads(score_path(noise).read_text())["drives"] for noise in NOISES}
    agent = RandomAgent(CAR_RACING.control_dim)
    returns: dict[str, dict[str, list[float]]] = {"expert": {}, "random": {}}
    for level, drives in scored.items():
        returns["expert"][level] = [drive["return"] for drive in drives]
        seeds = [drive["seed"] for drive in drives]
        returns["random"][level] = evaluate(CAR_RACING, agent, seeds, float(level)).tolist()
    keep(CAR_RACING.name, returns)


def score_path(noise: float) -> Path:
    """Return where the expert's score lies."""
    return Path(f"results/bench/car-expert-noise{noise:g}.json")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["score", "record", "extend", "redraw", "reference"])
    parser.add_argument("--noise", type=float, default=0.0, help="standard deviation σ of the control noise")
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument(
        "--diary", type=Path, help="file of finished episodes, continued if it exists; `redraw`, `reference`: none"
    )
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    if arguments.diary is None and arguments.what in ("score", "record", "extend"):
        parser.error(f"{arguments.what} needs --diary FILE, one for each noise level")
    noise, episodes, diary = arguments.noise, arguments.episodes, arguments.diary
    if arguments.what == "score":
        score(noise, episodes, diary, arguments.out or score_path(noise))
    elif arguments.what == "reference":
        reference()
    elif arguments.what == "redraw":
        redraw(noise)
    else:
        if arguments.what == "extend" and not diary.exists():
            begin_with_bundled(noise, diary)
        demonstrate(noise, episodes, diary)


if __name__ == "__main__":
    main()
