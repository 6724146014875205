"""python3 -B -m unittest gallery.test_outputs, in Benchmarks/Gallery."""

import tempfile
import unittest
from unittest import mock

from . import contests, drains, emulators, outputs, processes, remarks_brokers, remarks_rivals, report_rivals

EMQTT = """
1s recv total=0 rate=0.00/sec
2s recv total=200 rate=200.00/sec
2s publish_latency avg=20ms
3s recv total=300 rate=100.00/sec
3s publish_latency avg=50ms
1s pub total=24422 rate=24348.95/sec
1s connect_succ total=20 rate=19.80/sec
2s pub total=39000 rate=14578.00/sec
publish complete
"""

TSUNG = """# stats: dump at 1795679547
stats: users 0 20
stats: tr_publish 100 20.5 0.9 28.6 20.1 0 0
stats: mqtt_published 100 100
stats: {load,"tsung_controller@vm"} 1 3.55078125 0 3.55078125 3.55078125 0 0
# stats: dump at 1795679557
stats: tr_publish 300 21.5 0.9 2013.9 20.1 20.5 100
stats: mqtt_published 300 400
"""


class Outputs(unittest.TestCase):
    def test_the_last_total_of_emqtt_bench_counts(self):
        self.assertEqual(outputs.emqtt_counts(EMQTT), {"recv": 300, "pub": 39000, "connect_succ": 20})

    def test_seconds_of_emqtt_bench_weigh_by_their_messages(self):
        found = outputs.emqtt_latency(EMQTT)
        self.assertAlmostEqual(found["mean"], 0.030)
        self.assertEqual((found["highest_second"], found["received"]), (0.05, 300))

    def test_without_a_second_there_is_no_latency(self):
        self.assertEqual(outputs.emqtt_latency("1s recv total=10 rate=1/sec"), {})

    def test_totals_of_tsung_are_those_of_its_last_dump(self):
        self.assertEqual(outputs.tsung_totals(TSUNG), {"users": 20, "mqtt_published": 400})

    def test_means_of_tsung_weigh_by_their_interval(self):
        found = outputs.tsung_sample(TSUNG, "tr_publish")
        self.assertEqual((found["count"], found["max"]), (400, 2.0139))
        self.assertAlmostEqual(found["mean"], 0.02125)

    def test_a_stall_of_2_s_in_10_s(self):
        truth = outputs.stall_truth(2, 10)
        self.assertAlmostEqual(truth["mean"], 0.2)
        self.assertAlmostEqual(truth["p99"], 1.9)
        self.assertEqual(truth["max"], 2)


class Drain(unittest.TestCase):
    def test_the_time_is_within_the_stage_with_the_last_message(self):
        for backlog, received, ends in (
            (100, [(0.05, 40), (0.05, 60), (1, 10)], [0.05, 0.1]),
            (100, [(0.05, 100)], [0, 0.05]),
            (100, [(0.05, 40), (1, 60)], [0.05, 1.05]),
            (100, [(0.05, 40), (1, 59)], None),
        ):
            self.assertEqual(drains.seconds(backlog, received), ends)

    def test_messages_that_came_twice_widen_the_time(self):
        received = [(0.05, 60), (0.05, 45), (0.05, 5)]
        self.assertEqual(drains.seconds(100, received, 5), [0.05, 0.1])
        self.assertEqual(drains.seconds(100, received, 10)[0], 0.05)
        self.assertAlmostEqual(drains.seconds(100, received, 10)[1], 0.15)

    def test_a_rate_has_the_digits_of_its_slowest_round_and_stays_a_bound(self):
        fast, slow = {"seconds": [0.05, 0.1], "watched": 7}, {"seconds": [2, 3], "watched": 7}
        never = {"seconds": None, "watched": 7}
        for rounds, backlog, found in (
            ([fast], 32_000, ("at least", 320_000)),
            ([fast, slow], 32_000, ("at least", 10_000)),
            ([fast, never], 32_000, ("below", 4_600)),
            ([slow], 0, None),
            ([], 0, None),
        ):
            self.assertEqual(drains.bound([each | {"backlog": backlog} for each in rounds]), found)

    def test_the_scenario_changes_the_version_and_the_last_stage_only(self):
        text = "a\n connect: {protocol: 5, clean: false, session_expiry: 10m}\n - { name: drain-off, for: 5s }\nb\n"
        changed = drains.scenario(text).splitlines()
        self.assertEqual((changed[:2], changed[-1]), (["a", " connect: {protocol: 4, clean: false}"], "b"))
        self.assertEqual(len(changed), 3 + drains.FINE + drains.COARSE)


class Emulators(unittest.TestCase):
    def test_options_of_the_emulator_come_before_those_of_its_programs(self):
        program = "/usr/lib/erts-13/bin/beam.smp"
        for first in (program, "/usr/bin/script"):
            words = f"{first} -K true -P 16000000 -- -root /usr/lib/erlang -- -noshell".split()
            self.assertEqual(emulators.options(program, words, {}), "+K true +P 16000000")
            both = emulators.options(program, words, {"ERL_MAX_PORTS": "9"})
            self.assertEqual(both, "+K true +P 16000000 ERL_MAX_PORTS=9")

    def test_other_programs_have_none(self):
        self.assertIsNone(emulators.options("/usr/bin/clamor", ["/usr/bin/clamor", "conn"], {}))


class Programs(unittest.TestCase):
    def test_what_outlives_its_leader_ends_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            program = processes.Program(["sh", "-c", "sleep 600 & echo $!"], folder, "leader").wait(60)
            child = int(program.text)
            self.assertTrue(processes.wait_until(lambda: has_gone(child), 60))

    def test_a_program_that_hangs_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            program = processes.Program(["sleep", "600"], folder, "hung")
            with self.assertRaises(processes.Hung):
                program.wait(0)
            self.assertTrue(has_gone(program.pid))

    def test_an_ended_program_is_no_longer_signalled(self):
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch("atexit.unregister") as unregister:
                program = processes.Program(["true"], folder, "ended").wait(60)
            unregister.assert_called_once_with(program.end)
            with mock.patch("os.killpg") as kill:
                program.end()
            kill.assert_not_called()


def has_gone(pid):
    """Or is a zombie, which its new parent has not waited for yet."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Remarks(unittest.TestCase):
    def rivals(self, version="0.6.2", heard=30_000):
        figures = {"says": 60_000, "heard": heard, "broker": heard}
        answers = [
            {"tool": "emqtt_bench", "contest": contest, "part": part, "round": 1, "figures": figures}
            for contest, part in (("messages", "qos2"), ("counts", "qos0"), ("counts", "qos2"))
        ]
        sizes = vars(contests.Sizes(False))
        results = {"answers": answers, "sizes": sizes, "tools": ["emqtt_bench"], "versions": {"emqtt_bench": version}}
        return report_rivals.Answers(results)

    def test_the_version_of_emqtt_bench_is_named_where_it_is_known(self):
        for version, name in (("0.6.2", "emqtt_bench 0.6.2 "), ("not printed by the program", "emqtt_bench ")):
            text = remarks_rivals.remarks(self.rivals(version), "counts")[0]
            self.assertTrue(text.startswith(f"{name}counts each message"), text)

    def test_cpu_at_qos_2_is_a_lower_bound_unless_all_messages_are_known_to_have_arrived(self):
        for heard, is_marked in ((30_000, False), (29_999, True)):
            found = remarks_rivals.remarks(self.rivals(heard=heard), "messages")
            self.assertEqual(any("lower bound" in text for text in found), is_marked)

    def test_only_servers_in_erlang_have_its_heaps(self):
        answers = mock.Mock(median=lambda *_: 100_000)
        for server, is_erlang in (("ejabberd", True), ("rabbitmq", True), ("mosquitto", False), ("prosody", False)):
            self.assertEqual("Erlang" in remarks_brokers.memory(answers, server, "storm"), is_erlang)


if __name__ == "__main__":
    unittest.main()
