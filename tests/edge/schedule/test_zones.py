"""The times of lines of cron against Python's zoneinfo, which reads the same files: every zone of tzdata around each
change of the hour in ten years, and some zones over all of ten years (G90). The oracle knows nothing of the C code.

BATON_SEED repeats a run, BATON_ZONE_YEARS=FROM-TO chooses other years.
"""
import bisect
import datetime
import os
import pathlib
import random
import subprocess
import unittest
import zoneinfo

BIN = pathlib.Path(os.environ["BATON_BIN"])
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)
STRANGE = ["Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "Europe/Dublin", "Africa/Casablanca", "Africa/El_Aaiun",
           "America/Nuuk", "Antarctica/Troll", "Asia/Gaza", "Asia/Tehran", "America/Caracas", "Asia/Pyongyang", "Europe/Volgograd",
           "America/Sao_Paulo", "Asia/Kathmandu", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Pacific/Kwajalein"]


def seconds(naive):
    return int((naive - EPOCH).total_seconds())


def offset(zone, utc):
    return int(datetime.datetime.fromtimestamp(utc, zone).utcoffset().total_seconds())


def changes(zone, start, end):
    """The seconds from which the offset is another one."""
    found, step, at = [], 6 * 3600, start
    before = offset(zone, at)
    while at < end:
        after = offset(zone, at + step)
        if after != before:
            lo, hi = at, at + step
            while hi - lo > 1:
                mid = (lo + hi) // 2
                lo, hi = (mid, hi) if offset(zone, mid) == before else (lo, mid)
            found.append(hi)
        at, before = at + step, after
    return found


def numbers(field, low, high):
    out = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, last = (low, high) if span == "*" else (int(span.split("-")[0]), int(span.split("-")[-1]))
        out |= set(range(first, last + 1, int(step or 1)))
    return out


class Line:
    def __init__(self, text):
        self.text = text
        m, h, d, mo, w = text.split()
        self.minutes, self.hours = sorted(numbers(m, 0, 59)), sorted(numbers(h, 0, 23))
        self.days, self.months, self.week = numbers(d, 1, 31), numbers(mo, 1, 12), {n % 7 for n in numbers(w, 0, 7 if w != "*" else 6)}
        self.either = d[0] != "*" and w[0] != "*"

    def day(self, date):
        of_month, of_week = date.day in self.days, date.isoweekday() % 7 in self.week
        return date.month in self.months and ((of_month or of_week) if self.either else (of_month and of_week))

    def of_wall(self, zone, start, end):
        """Each shown minute once: the first time; a minute that is not shown, at the change."""
        out = set()
        date = (EPOCH + datetime.timedelta(seconds=start - 2 * 86400)).date()
        while seconds(datetime.datetime.combine(date, datetime.time())) < end + 2 * 86400:
            if self.day(date):
                for h in self.hours:
                    for m in self.minutes:
                        naive = datetime.datetime(date.year, date.month, date.day, h, m)
                        utc = int(naive.replace(tzinfo=zone, fold=0).timestamp())
                        if datetime.datetime.fromtimestamp(utc, zone).replace(tzinfo=None) != naive:
                            lo = seconds(naive) - offset(zone, utc)  # before the gap; utc is after it
                            before, hi = offset(zone, lo), utc
                            while hi - lo > 1:
                                mid = (lo + hi) // 2
                                lo, hi = (mid, hi) if offset(zone, mid) == before else (lo, mid)
                            utc = hi
                        out.add(utc)
            date += datetime.timedelta(days=1)
        out = sorted(out)
        return out[bisect.bisect_right(out, start):bisect.bisect_right(out, end)]

    def of_real_time(self, zone, start, end):
        out = []
        for utc in range(start - start % 60 + 60, end + 1, 60):
            shown = datetime.datetime.fromtimestamp(utc, zone)
            if shown.second == 0 and shown.minute in self.minutes and self.day(shown.date()):
                out.append(utc)
        return out

    def times(self, zone, start, end):
        return (self.of_real_time if len(self.hours) == 24 else self.of_wall)(zone, start, end)


def random_field(rng, low, high):
    kind = rng.randrange(4)
    if kind == 0:
        return "*"
    if kind == 1:
        return str(rng.randint(low, high))
    if kind == 2:
        first = rng.randint(low, high)
        return "%d-%d/%d" % (first, rng.randint(first, high), rng.randint(1, 5))
    return ",".join(str(rng.randint(low, high)) for _ in range(rng.randint(2, 3)))


def random_line(rng, hours=None):
    minute = rng.choice([str(rng.randrange(60)), "0", "*/15", "*/30", "30", "5,35"])
    hour = hours if hours is not None else rng.choice(["0", "1", "2", "3", "1-3", "0,23", "*/2", "*", "2,3", "*"])
    return Line(" ".join([minute, hour, rng.choice(["*", "*", random_field(rng, 1, 31)]), rng.choice(["*", "*", random_field(rng, 1, 12)]),
                          rng.choice(["*", "*", random_field(rng, 0, 7)])]))


class Zones(unittest.TestCase):
    def setUp(self):
        self.seed = int(os.environ.get("BATON_SEED", random.randrange(1 << 32)))
        self.rng = random.Random(self.seed)
        years = os.environ.get("BATON_ZONE_YEARS", self.rng.choice(["2005-2015", "2010-2020", "2020-2030", "2033-2043"])).split("-")
        self.start, self.end = (seconds(datetime.datetime(int(y), 1, 1)) for y in years)
        print("seed %d, years %s" % (self.seed, "-".join(years)), flush=True)
        self.asked = []

    def ask(self, name, line, start, end):
        self.asked.append((name, line, start, end))

    def compare(self):
        text = "".join("%s|%d|%d|%s\n" % (n, s, e, line.text) for n, line, s, e in self.asked)
        done = subprocess.run([BIN / "schedule_times"], input=text, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(self.asked))
        fires = 0
        for (name, line, start, end), answer in zip(self.asked, answers):
            zone = zoneinfo.ZoneInfo(name)
            if answer.startswith("error 11"):  # no such day
                self.assertEqual(line.times(zone, start, end), [], (name, line.text, self.seed))
                continue
            got, want = [int(t) for t in answer.split()], line.times(zone, start, end)
            fires += len(want)
            if got != want:
                differ = sorted(set(got) ^ set(want))[:5]
                self.fail("%s '%s' seed %d: %s" % (name, line.text, self.seed, [(t, str(datetime.datetime.fromtimestamp(t, zone)),
                                                                            "too much" if t in got else "missing") for t in differ]))
        return fires

    def test_every_zone_around_each_change_of_ten_years(self):
        names = sorted(zoneinfo.available_timezones() - {"localtime", "Factory", "posixrules"})
        self.assertGreater(len(names), 400)
        n = 0
        for name in names:
            zone = zoneinfo.ZoneInfo(name)
            for at in changes(zone, self.start, self.end):
                self.ask(name, random_line(self.rng), at - 86400 - self.rng.randrange(7200), at + 86400)
                n += 1
        print("%d changes of %d zones, %d fires" % (n, len(names), self.compare()), flush=True)
        self.assertGreater(n, 1000)

    def test_strange_zones_over_all_of_ten_years(self):
        for name in STRANGE:
            for hours in ("2", "0", "1-3/2", "*/6"):
                self.ask(name, random_line(self.rng, hours), self.start, self.end)
        print("%d fires" % self.compare(), flush=True)

    def test_the_days_that_are_known_for_their_gaps(self):
        """Apia lost December 30, 2011; Lord Howe moves by half an hour; Dublin is in winter time by a negative rule."""
        for name, day in (("Pacific/Apia", (2011, 12, 30)), ("Australia/Lord_Howe", (2024, 10, 6)), ("Australia/Lord_Howe", (2024, 4, 7)),
                          ("Pacific/Chatham", (2024, 9, 29)), ("Europe/Dublin", (2030, 3, 31)), ("Europe/Dublin", (2040, 10, 28)),
                          ("Africa/Casablanca", (2026, 2, 15)), ("Africa/Casablanca", (2026, 3, 22)), ("Pacific/Kwajalein", (1993, 8, 21))):
            at = seconds(datetime.datetime(*day))
            for text in ("* * * * *", "*/10 0-5 * * *", "0 12 * * *", "30 2 * * *", "15 1,2 * * *", "45 2 30 12 5"):
                self.ask(name, Line(text), at - 2 * 86400, at + 2 * 86400)
        self.compare()


if __name__ == "__main__":
    unittest.main(verbosity=2)
