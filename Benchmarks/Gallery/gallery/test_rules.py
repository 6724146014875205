"""What the pages say of kept figures, and how answers are asked again; as test_outputs is run."""

import contextlib
import importlib.machinery
import importlib.util
import pathlib
import types
import unittest

from . import document, limits, outputs, processes, remarks_brokers, remarks_rivals, report_rivals, tables_brokers
from .limits import Limit

STEPS = [
    {"load": load, "verdict": verdict, "stolen": stolen, "reason": None}
    for load, verdict, stolen in (
        (4000, "held", 0),
        (8000, "broken", 0.3),
        (8000, "broken", 0.02),
        (6000, "held", 0.2),
        (6000, "held", 0.05),
        (7000, "generator-limited", 0.4),
        (7000, "disturbed", 0.2),
    )
]


def searched(kind="found", load=6000, high=8000, **figures):
    quiet = {"stolen": 0, "others": 0, "server_cores": 0.5, "server_thread": 0.2, "generator_cores": 0.5}
    known = {"kind": kind, "load": load, "low": load, "high": high, "reason": None, "steps": STEPS}
    return known | (quiet if load else {"stolen": 0}) | figures


def answers(server, question, *rounds, other=None, number=3):
    """Of one server, and of mosquitto if there is `other`."""
    found = [{"server": server, "question": question, "figures": figures} for figures in rounds]
    if other:
        found.append({"server": "mosquitto", "question": question, "figures": other})
    names = [{"name": name, "title": name} for name in (server, *(["mosquitto"] if other else []))]
    sizes = {"search_seconds": 60, "subscribers": 1000, "occupants": 200, "storm_rate": 1000}
    return tables_brokers.Answers(
        {"answers": found, "servers": {"mqtt": names}, "sizes": sizes, "cores": 2, "rounds": number}
    )


class Edges(unittest.TestCase):
    def test_an_answer_that_was_found_has_its_own(self):
        answer = {"kind": "found", "load": 5, "low": 4, "high": 6}
        self.assertEqual(limits.edges(answer, STEPS), {"load": 5, "low": 4, "high": 6})

    def test_others_have_what_their_steps_show(self):
        for words, load, high in (
            ("4 held, 8 held, 16 broken, 8 broken, 12 held, 32 generator-limited", 4, 16),
            ("4 held, 8 generator-limited", 4, None),
            ("4 broken, 2 broken, 1 disturbed", None, 2),
            ("4 disturbed", None, None),
        ):
            pairs = [step.split() for step in words.split(", ")]
            steps = [{"load": int(load), "verdict": verdict} for load, verdict in pairs]
            for kind in ("interrupted", "generator-limited"):
                # Its own `high` is a load that could not be offered.
                found = limits.edges({"kind": kind, "high": 999}, steps)
                self.assertEqual(found, {"load": load, "low": load, "high": high}, words)

    def test_an_edge_counts_by_its_quietest_step(self):
        for kind, shares in (("found", [0.05, 0.02]), ("generator-limited", [0.05, 0.02, 0.2])):
            self.assertEqual([step["stolen"] for step in limits.deciding(kind, 6000, 8000, STEPS)], shares)

    def test_all_that_is_known_is_shown(self):
        for kind, load, high, text, interval in (
            ("found", 6000, 8000, "6,000/s", "6,000 to 8,000/s"),
            ("interrupted", 6000, 8000, "at least 6,000/s", "6,000 to 8,000/s"),
            ("generator-limited", 6000, None, "at least 6,000/s", "–"),
            ("generator-limited", None, 8000, "below 8,000/s", "–"),
            ("nothing-holds", None, 8000, "below 8,000/s", "–"),
            ("interrupted", None, None, "not known", "–"),
        ):
            figures = searched(kind, load, high)
            self.assertEqual((tables_brokers.load(figures), tables_brokers.interval(figures)), (text, interval))


class Limits(unittest.TestCase):
    CASES = [
        (searched(), Limit.SERVER, "pauses of the server"),
        (searched(server_thread=0.9), Limit.SERVER, "busiest thread used 90 %"),
        (searched(server_cores=1.2), Limit.HOST, "On a machine of its own"),
        (searched(server_cores=1.2, stolen=0.21), Limit.UNCLEAR, "other machines took 21 %"),
        (searched(others=0.4), Limit.UNCLEAR, "other work used 0.4 cores"),
        (searched(server_cores=None), Limit.UNCLEAR, "the server's CPU is not known"),
        (searched("generator-limited"), Limit.GENERATOR, "the generator was the limit"),
        (searched("generator-limited", stolen=0.21), Limit.UNCLEAR, "other machines took 21 %"),
        (searched("generator-limited", None, stolen=0.21), Limit.UNCLEAR, "No load is known to hold; 8,000/s broke"),
        (searched("interrupted"), Limit.TIME, "ended after 60 s. The server held 6,000/s, and 8,000/s broke"),
        (searched("at-least", high=None), Limit.OFFERED, "all loads held"),
        (searched("nothing-holds", None), Limit.SERVER, "no load held"),
    ]

    def test_table_and_remark_name_the_same_limit(self):
        for figures, found, text in self.CASES:
            self.assertEqual(limits.limit(figures, 2), found)
            self.assertTrue(tables_brokers.limit_cell(figures, 2).startswith(found.value), text)
            self.assertIn(text, remarks_brokers.met(answers("prosody", "message", figures), "prosody", "message"))

    def test_the_remark_of_one_limit_is_of_no_other(self):
        words = {
            Limit.HOST: "On a machine of its own",
            Limit.GENERATOR: "the generator was",
            Limit.TIME: "was ended",
            Limit.UNCLEAR: "On a quiet host",
        }
        for figures, found, _ in self.CASES:
            text = remarks_brokers.met(answers("prosody", "message", figures), "prosody", "message")
            said = [limit for limit, word in words.items() if word in text]
            self.assertEqual(said, [found] if found in words else [])


class Servers(unittest.TestCase):
    def test_a_factor_needs_three_rounds_and_a_server_that_keeps_up(self):
        for number, p50, text in ((3, 0.02, "160 times"), (1, 0.02, "far above"), (3, 2.4, "far above")):
            figures = {"p50": p50, "p99": 4.58, "cpu_per_message": 308e-6}
            found = answers("rabbitmq", "fan-out", figures, other={"p99": 0.028}, number=number)
            self.assertIn(f"p99 is {text} the lowest", remarks_brokers.stands_out(found, "rabbitmq", "fan-out"))

    def test_clients_that_failed_leave_times_without_a_factor(self):
        for failed, text in ((0, "160 times"), (9, "far above")):
            figures = {"p99": 4.58, "clients": 5000, "failures": failed, "errors": ["timeout: 9"]}
            found = answers("rabbitmq", "storm", figures, other={"p99": 0.028})
            self.assertIn(f"p99 is {text} the lowest", remarks_brokers.stands_out(found, "rabbitmq", "storm"))
            self.assertEqual(bool(remarks_brokers.failures(found, "rabbitmq", "storm")), failed > 0)

    def test_of_nothing_no_share_is_lost(self):
        self.assertEqual(tables_brokers.lost([{"lost": 0, "expected": 0}]), "–")
        self.assertEqual(tables_brokers.lost([{"lost": 1, "expected": 9}, {"lost": 0, "expected": 0}]), "1 of 9")

    def test_rounds_that_agree_are_one_figure(self):
        self.assertEqual(document.spread([5, 5, None], document.whole), "5")
        self.assertEqual(document.spread([5, 7, 6], document.whole), "6 (5 to 7)")

    def test_a_fan_out_longer_than_its_interval_is_behind(self):
        for p50, is_behind in ((0.199, False), (0.2, True)):
            found = answers("rabbitmq", "fan-out", {"p50": p50, "cpu_per_message": 308e-6})
            text = remarks_brokers.behind(found, "rabbitmq", "fan-out")
            self.assertEqual(bool(text), is_behind)
        self.assertIn("5,000 deliveries per second. At 308 µs of its CPU each they want 1.54 of 2 cores", text)

    def test_stolen_cpu_is_named_above_a_tenth_in_the_rounds_that_had_it(self):
        for shares, text in (((0.1, None), None), ((0.11, 0.02, 0.3), "up to 30 % of the host's CPU in 2 of 3 rounds")):
            found = answers("mosquitto", "storm", *({"stolen": share} for share in shares))
            self.assertEqual(text is None, remarks_brokers.stolen(found, "mosquitto", "storm") is None)
            self.assertIn(text or "", remarks_brokers.stolen(found, "mosquitto", "storm") or "")

    def test_a_loss_is_named_where_messages_were_lost(self):
        for lost in (0, 3):
            figures = {"verdict": "generator-limited", "reasons": ["late"], "lost": lost}
            text = remarks_brokers.limited(answers("rabbitmq", "drain", figures), "rabbitmq", "drain")
            self.assertEqual("The loss is" in text, lost > 0)

    def test_drains_are_explained_where_their_intervals_lie_apart(self):
        for own, other, is_explained in (([0.05, 0.1], [0.3, 0.35], True), ([0.05, 0.2], [0.3, 0.35], False)):
            figures = [{"backlog": 32_000, "seconds": each, "watched": 7} for each in (own, other)]
            found = answers("embedded", "drain", figures[0], other=figures[1])
            self.assertEqual(bool(remarks_brokers.window(found, "embedded", "drain")), is_explained)


class Tools(unittest.TestCase):
    def test_an_error_has_its_sign_one_digit_and_no_more_than_its_tool_prints(self):
        for seconds, resolution, text in (
            (-0.00016, 0, "-0.2 ms"),
            (0.00015, 0, "+0.1 ms"),
            (-0.00004, 0, "0.0 ms"),
            (0.0009, 0.001, "within 1 ms"),
            (0.0013, 0.001, "+1.3 ms"),
        ):
            self.assertEqual(document.signed(seconds, resolution), text)

    def test_the_error_is_the_median_of_pairs_and_the_noise_that_of_the_figures_without_it(self):
        error, noise, _ = outputs.delay_error("Clamor", 0.02, [0.001, 0.002, 0.004], [0.021, 0.0225, 0.023])
        self.assertAlmostEqual(error, 0)
        self.assertAlmostEqual(noise, 0.003)
        self.assertIsNone(outputs.delay_error("Clamor", 0.02, [0.001], [0.021])[1])
        self.assertIsNone(outputs.delay_error("tsung", 0.02, [None], [None]))

    def rivals(self, **figures):
        answer = {"tool": "emqtt_bench", "contest": "connects", "part": "", "round": 1, "figures": figures}
        return report_rivals.Answers({"answers": [answer], "tools": ["emqtt_bench"], "rounds": 1})

    def test_the_large_tables_are_named_where_they_were_made(self):
        base, processes, ports = 459 * 2**20, "processes (`+P`)", "ports (`ERL_MAX_PORTS`)"
        for options, size, names in (
            ("OTP 25: +P 16000000 +K true", base, [processes]),
            ("OTP 25: +P 16000000 +K true ERL_MAX_PORTS=1600000", base, [processes]),
            ("OTP 25: +P 16000000 +K true ERL_MAX_PORTS=16000000", base, [processes, ports]),
            ("OTP 25: +P 16000000 +K true ERL_MAX_PORTS=16000000", base // 2, []),
            ("OTP 25: +P 250000", base, []),
            ("OTP 25: +P 16000000", base // 3, []),
            (None, base, []),
        ):
            self.assertEqual(remarks_rivals.large_tables(self.rivals(emulator=options, base=size)), names)

    def test_each_large_table_has_its_size(self):
        for ports, words in (("", "(`+P`). The table takes"), (" ERL_MAX_PORTS=16000000", "Each of these tables takes")):
            found = self.rivals(emulator=f"OTP 25: +P 16000000{ports}", base=459 * 2**20)
            self.assertIn(words, remarks_rivals.of_tables(found))

    def test_a_count_is_compared_with_the_number_of_its_qos(self):
        def answers(qos, says, heard):
            figures = {"says": says, "heard": heard}
            answer = {"tool": "emqtt_bench", "contest": "counts", "part": f"qos{qos}", "round": 1, "figures": figures}
            results = {"answers": [answer], "tools": ["emqtt_bench"], "rounds": 1, "sizes": {"counted": [9, 5, 5]}}
            return report_rivals.Answers(results)

        for qos, says, heard, is_missed, is_silent in ((0, 9, 8, True, False), (1, None, 5, False, True)):
            found = answers(qos, says, heard)
            self.assertEqual(remarks_rivals.missed(found, "emqtt_bench", qos), is_missed)
            self.assertEqual(remarks_rivals.prints_none("emqtt_bench")(found), is_silent)

    def test_disturbed_runs_of_a_tool_are_named(self):
        for share, count in ((0.1, 0), (None, 0), (0.11, 1)):
            self.assertEqual(len(list(remarks_rivals.disturbed(self.rivals(stolen=share), "connects"))), count)


def script(name):
    """A program beside this package."""
    path = str(pathlib.Path(__file__).parents[1] / name)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Asking(unittest.TestCase):
    def gallery(self, repeat_seconds=600):
        self.results, self.starts = {"answers": [], "problems": []}, 0
        sizes = types.SimpleNamespace(repeats=2, repeat_seconds=repeat_seconds)
        return script("brokers").Gallery(self.results, lambda: None, None, sizes)

    @property
    def kind(self):
        @contextlib.contextmanager
        def start(*_):
            self.starts += 1
            yield None

        return types.SimpleNamespace(name="mosquitto", title="mosquitto", start=start, qos=(0, 1, 2))

    def asked(self, *shares, **limits):
        """The share of the answer that counts, and how many servers were started."""
        left = list(shares)
        with contextlib.redirect_stdout(None):
            self.gallery(**limits).ask(1, [self.kind], {"storm": lambda *_: {"stolen": left.pop(0)}}, 0)
        return [answer["figures"]["stolen"] for answer in self.results["answers"]], self.starts

    def test_a_disturbed_answer_is_asked_again_of_a_fresh_server_and_the_quietest_counts(self):
        for shares, found, starts in (
            ((0.05,), 0.05, 1),
            ((None,), None, 1),
            ((0.2, 0.05), 0.05, 2),
            ((0.2, 0.3, 0.15), 0.15, 3),
            ((0.2, 0.3, 0.4), 0.2, 3),
        ):
            self.assertEqual(self.asked(*shares), ([found], starts))

    def test_repetitions_end_with_their_time(self):
        self.assertEqual(self.asked(0.2, repeat_seconds=-1), ([0.2], 1))

    def test_a_hung_run_is_a_problem_and_its_server_is_not_asked_further(self):
        def hang(*_):
            raise processes.Hung("clamor conn: did not end within 120 s")

        with contextlib.redirect_stderr(None), contextlib.redirect_stdout(None):
            self.gallery().ask(1, [self.kind], {"storm": hang, "drain": lambda *_: {"stolen": 0}}, 0)
        self.assertEqual(
            self.results["problems"],
            [
                "mosquitto, storm: clamor conn: did not end within 120 s",
                "mosquitto, drain: not asked, since clamor conn: did not end within 120 s",
            ],
        )
        self.assertEqual(self.results["answers"], [])


if __name__ == "__main__":
    unittest.main()
