"""Times and zones of calc compared with Python's zoneinfo on random moments. The seed is printed and can be given:
BATON_TEST_SEED=n python3 test_calc_times.py"""
import datetime
import json
import os
import pathlib
import random
import subprocess
import unittest
import zoneinfo

BIN = pathlib.Path(os.environ["BATON_BIN"])
SEED = int(os.environ.get("BATON_TEST_SEED", random.randrange(10**9)))
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca",
         "Pacific/Apia", "Asia/Tehran", "Antarctica/Troll", "UTC")
UTC = datetime.timezone.utc


def calc(skill, **parameters):
    done = subprocess.run([BIN / "baton-agent-calc", "--once", skill], input=json.dumps({"parameters": parameters}),
                          capture_output=True, text=True, timeout=60)
    answer = json.loads(done.stdout)
    return answer["result"]["data"] if answer["outcome"] == "completed" else answer


class Times(unittest.TestCase):
    def setUp(self):
        print("BATON_TEST_SEED=%d" % SEED)
        self.rng = random.Random(SEED)

    def moment(self):
        return self.rng.randrange(0, 4102444800)  # 1970 to 2100

    def test_a_moment_is_shown_as_python_shows_it(self):
        for _ in range(12):
            at = self.moment()
            data = calc("time", time=at, to=list(ZONES)) if at >= 10**8 else calc("time", time=at * 1000 + 10**11, to=list(ZONES))
            moment = datetime.datetime.fromisoformat(data["timestamp"].replace("Z", "+00:00"))
            for zone, local, offset, weekday in data["rows"]:
                there = moment.astimezone(zoneinfo.ZoneInfo(zone))
                with self.subTest(zone=zone, at=data["timestamp"]):
                    self.assertEqual(local.replace("Z", "+00:00"), there.isoformat())
                    self.assertEqual(weekday, there.strftime("%A"))
                    self.assertEqual(offset, local[19:] if local[19:] != "Z" else "+00:00")

    def test_a_clock_on_the_wall_is_the_moment_that_python_finds(self):
        for _ in range(30):
            zone = self.rng.choice(ZONES)
            here = zoneinfo.ZoneInfo(zone)
            wall = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=max(self.moment(), 10**8))
            with self.subTest(zone=zone, wall=wall):
                data = calc("time", time=wall.isoformat(" "), zone=zone)
                there = wall.replace(tzinfo=here, fold=0)
                moment = there.astimezone(UTC)
                if "skipped" in data:
                    self.assertNotEqual(moment.astimezone(here).replace(tzinfo=None), wall)
                    continue
                self.assertEqual(data["timestamp"], moment.strftime("%Y-%m-%dT%H:%M:%S.000Z"))
                self.assertEqual("repeated" in data, there.utcoffset() != wall.replace(tzinfo=here, fold=1).utcoffset())
                self.assertEqual(data["week"], "%d-W%02d" % there.isocalendar()[:2])
                self.assertEqual(data["dayOfYear"], there.timetuple().tm_yday)

    def test_every_hour_around_the_changes_of_a_year(self):
        for zone in ("Europe/Berlin", "Australia/Lord_Howe", "America/New_York"):
            here = zoneinfo.ZoneInfo(zone)
            moment = datetime.datetime(2026, 1, 1, tzinfo=UTC)
            changes = 0
            while moment.year == 2026:
                after = moment + datetime.timedelta(hours=1)
                if moment.astimezone(here).utcoffset() != after.astimezone(here).utcoffset():
                    changes += 1
                    for minutes in range(-90, 151, 30):
                        wall = (moment + datetime.timedelta(minutes=minutes)).astimezone(here).replace(tzinfo=None, fold=0)
                        there = wall.replace(tzinfo=here)
                        with self.subTest(zone=zone, wall=wall):
                            data = calc("time", time=wall.isoformat(), zone=zone)
                            self.assertEqual(data["timestamp"], there.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"))
                            self.assertEqual("repeated" in data, there.utcoffset() != there.replace(fold=1).utcoffset())
                moment = after
            self.assertEqual(changes, 2, zone)

    def test_a_duration_comes_back_from_its_own_text(self):
        for _ in range(15):
            ms = self.rng.choice([1, 1000, 60000, 3600000, 86400000]) * self.rng.randrange(-1000, 1000)
            first = calc("duration", value=ms / 1000)
            self.assertEqual(first["ms"], ms)
            self.assertEqual(calc("duration", value=first["iso"])["ms"], ms)
            delta = datetime.timedelta(milliseconds=ms)
            self.assertAlmostEqual(first["seconds"], delta.total_seconds())

    def test_what_it_does_not_know_names_what_would_be_right(self):
        for skill, parameters, words in (
                ("now", {"zone": "Europe/Berlinn"}, "did you mean Europe/Berlin?"),
                ("time", {"time": "tomorow"}, "expected one such as"),
                ("time", {"time": True}, "time"),
                ("time", {"to": ["UTC"] * 65}, "to"),
                ("duration", {"value": "P1M"}, "no fixed length"),
                ("date", {"duration": "1 fortnight"}, "no duration")):
            with self.subTest(skill=skill, parameters=parameters):
                answer = calc(skill, **parameters)
                self.assertEqual(answer["failure"]["class"], "VALIDATION_ERROR")
                self.assertIn(words, answer["failure"]["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
