"""Real players against weir: `make players ARGS=--help`. Two players at a time watch each shape of stream. The numbers in
the shown frames are judged. HLSJS, DASHJS and SHAKAJS are the paths of the players' built scripts."""

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import sys
import threading
import time

import judgement
import programs
import stage
import timing
from scene import NAME, Scene
from shapes import SHAPES, Shape


def jobs(shapes: list[Shape], players: list[str] | None, absent: dict[str, str]) -> list[tuple[Shape, list[str]]]:
    """Two browsers at a time; the other programs, which decode small frames, all together."""
    found = []
    for shape in shapes:
        wanted = [p for p in shape.players if p not in absent and (not players or p in players)]
        browsers = [p for p in wanted if p in stage.PLAYERS]
        others = [p for p in wanted if p not in stage.PLAYERS]
        found += [(shape, browsers[n : n + 2]) for n in range(0, len(browsers), 2)]
        found += [(shape, others)] if others else []
    return found


def prepared(shape: Shape) -> Scene:
    scene = Scene(shape.flags, shape.film, shape.window, shape.supervised, shape.silent, shape.burst)
    try:
        scene.prepare()
        shape.first(scene)
        return scene
    except BaseException:
        scene.close()
        raise


def played(shape: Shape, players: list[str], scene: Scene, origin: str, seconds: float) -> list[dict]:
    """The figures of each player."""
    viewers: dict[str, stage.Viewer | programs.Program] = {}
    records: dict[str, dict] = {}
    failures: list[str] = []
    rules: list[str] = []

    def act() -> None:
        try:
            shape.act(scene)
        except Exception as error:  # noqa: BLE001  (told in the report: the run is worth nothing)
            failures.append(f"harness: {error!r}")

    try:
        for player in players:
            if player in stage.PLAYERS:
                viewers[player] = stage.Viewer(player, origin)
        acting = threading.Thread(target=act, daemon=True)
        for player in players:
            if player in viewers:
                viewers[player].begin(scene.web, NAME, shape.height, scene.path_for(player))
            elif player == "timing":
                rules = timing.problems(scene.web, NAME)
            else:
                viewers[player] = programs.Program(player)
                viewers[player].begin(f"{scene.web}/live/{NAME}/index.m3u8")
        acting.start()
        time.sleep(seconds)
        acting.join(60)
        records = {player: viewer.end() for player, viewer in viewers.items()}
    except Exception as error:  # noqa: BLE001
        failures.append(f"harness: {error!r}")
    finally:
        for viewer in viewers.values():
            viewer.close()
        scene.close()
    results = []
    for player in players:
        if player in records:
            figures = judgement.judge(records[player], scene.expectation, is_browser=player in stage.PLAYERS,
                                      by_segments=player in programs.PROGRAMS or player in stage.BY_SEGMENTS,
                                      stays_at_end=player in stage.STAY_AT_END)
        else:
            figures = judgement.Figures(broken=rules[:])
        figures.broken += failures
        results.append({"shape": shape.name, "player": player, **dataclasses.asdict(figures), "record": records.get(player),
                        "expectation": dataclasses.asdict(scene.expectation) | {"numbers": None}})
    return results


COLUMNS = ("shape", "player", "start", "latency", "stalls", "stalled", "missing", "recovered", "av", "requests", "manifests")


def line(result: dict) -> str:
    def text(value) -> str:
        return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)

    cells = " ".join(f"{text(result.get(c)):>{max(len(c), 7)}}" if c not in ("shape", "player") else f"{result[c]:<13}"
                     for c in COLUMNS)
    return cells + "  " + ("good" if not result["broken"] else "BROKEN: " + "; ".join(result["broken"][:4]))


#: Up to this many failed runs are repeated alone, because other work on the machine may hold players up.
AGAIN = 8


def run(todo: list[tuple[Shape, list[str]]], seconds: float | None) -> list[dict]:
    """Plays one shape after the other, while the next stream grows older than its window."""
    results: list[dict] = []
    with stage.pages() as origin, concurrent.futures.ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(prepared, todo[0][0]) if todo else None
        for number, (shape, players) in enumerate(todo):
            try:
                scene = coming.result()
            except Exception as error:  # noqa: BLE001  (one shape that cannot be made leaves the others)
                scene = error
            coming = ahead.submit(prepared, todo[number + 1][0]) if number + 1 < len(todo) else None
            if isinstance(scene, Exception):
                found = [{"shape": shape.name, "player": player, "broken": [f"harness: {scene!r}"], "errors": []}
                         for player in players]
            else:
                found = played(shape, players, scene, origin, seconds or shape.seconds)
            for result in found:
                print(line(result), flush=True)
                for error in result["errors"][:5]:
                    print(f"    {error}", flush=True)
            results += found
    return results


def broken(results: list[dict]) -> list[dict]:
    return [r for r in results if r["broken"]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make players", description=__doc__)
    parser.add_argument("--shape", action="append", choices=[s.name for s in SHAPES], help="only this one; may be repeated")
    parser.add_argument("--player", action="append", choices=[*stage.PLAYERS, *programs.PROGRAMS, "timing"],
                        help="only this one; may be repeated")
    parser.add_argument("--seconds", type=float, help="how long each is watched")
    parser.add_argument("--once", action="store_true", help="do not try broken runs once more")
    parser.add_argument("--report", type=pathlib.Path, help="write figures and records here, as JSON")
    options = parser.parse_args()
    absent = stage.missing() | programs.missing()
    for player, reason in absent.items():
        print(f"skipped: {player}: {reason}")
    shapes = [s for s in SHAPES if not options.shape or s.name in options.shape]
    todo = jobs(shapes, options.player, absent)
    print(f"{'shape':<13} {'player':<13} " + " ".join(f"{c:>{max(len(c), 7)}}" for c in COLUMNS[2:]), flush=True)
    began = time.monotonic()
    results = run(todo, options.seconds)
    bad = {(r["shape"], r["player"]) for r in broken(results)}
    again = [(shape, wanted) for shape, players in todo if (wanted := [p for p in players if (shape.name, p) in bad])]
    if again and len(again) <= AGAIN and not options.once:
        print("once more, by themselves:", flush=True)
        second = {(r["shape"], r["player"]): r for r in run(again, options.seconds)}
        for shape, player in sorted(bad):
            if not second[shape, player]["broken"]:
                print(f"unsteady: {player} on {shape} failed once and passed once")
        results = [second.get((r["shape"], r["player"]), r) for r in results]
    if options.report:
        options.report.write_text(json.dumps(results))
    left = broken(results)
    print(f"{len(results) - len(left)} of {len(results)} good, {(time.monotonic() - began) / 60:.1f} minutes")
    return 1 if left or not results else 0


if __name__ == "__main__":
    sys.exit(main())
