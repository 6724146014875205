import RunControl
import Scenario
import TestSupport
import Testing
import Workloads
import clamor

@Suite("A table whose rows are the clients'")
struct RowsTests {
    private static func parsed(_ table: String, _ line: String) throws -> (Invocation, path: String) {
        let folder = try ScratchFolder()
        let path = try folder.write(table, to: "rows.csv")
        return (Invocation.parse("\(line) --rows \(path)".split(separator: " ").map(String.init)), path)
    }

    @Test(
        "is read as CSV: quotes, line ends of both kinds, empty lines, a byte order mark",
        arguments: [
            ("id,site\nx1,a\nx2,b", ["x1", "a", "x2", "b"]),
            ("id,site\r\nx1,a\r\n\r\nx2,b\r\n", ["x1", "a", "x2", "b"]),
            ("\u{FEFF}id,site\n\"a,b\",\"say \"\"hi\"\"\"\n", ["a,b", "say \"hi\""]),
            ("id,site\n,\n", ["", ""]),
        ]
    )
    func reads(_ table: String, _ cells: [String]) throws {
        let (invocation, _) = try Self.parsed(table, "pub -m %{id}%{site}")
        guard let options = invocation.mqtt, let rows = options.rows else {
            Issue.record("\(invocation)")
            return
        }
        #expect(rows.columns == ["id", "site"] && rows.count == cells.count / 2)
        for index in cells.indices {
            #expect(Array(rows.cell(row: index / 2, column: index % 2)) == Array(cells[index].utf8))
        }
    }

    @Test("two tables differ in what they are hashed to, and a plan says which it had")
    func digests() throws {
        func digest(_ table: String) throws -> String? {
            guard let options = try Self.parsed(table, "pub -t %{a}").0.mqtt else { return nil }
            return options.rows?.digest
        }
        let one = try #require(try digest("a\nx\n"))
        #expect(one.count == 64)
        #expect(try digest("a\nx\n") == one)
        #expect(try digest("a\ny\n") != one)
    }

    @Test(
        "problems of the table are reported with the line, those of a text with the row, and without password cells",
        arguments: [
            (
                "", "pub -t %{a}",
                "pub: --rows: PATH: a column has no name; its first line names all of them, such as id,site"
            ),
            (
                "a,\n1,2", "pub -t %{a}",
                "pub: --rows: PATH: a column has no name; its first line names all of them, such as id,site"
            ),
            (
                "a,a\n1,2", "pub -t %{a}",
                "pub: --rows: PATH: two columns are called 'a'; call one of them something else"
            ),
            (
                "a}\n1", "pub -t %{a}",
                "pub: --rows: PATH: the column 'a}' has a { or } in its name, which %{column} has too; call it something else"
            ),
            (
                "a\n", "pub -t %{a}",
                "pub: --rows: PATH has no rows; its first line names the columns, one row a line follows"
            ),
            (
                "a,b\n1,2\n\n3\n", "pub -t %{a}",
                "pub: --rows: PATH:4: 1 cell for 2 columns; write each row like the first line"
            ),
            ("a\n\"1\n2\"\n", "pub -t %{a}", "pub: --rows: PATH:2: a quote is left open; a cell ends on its line"),
            ("id\n1\n", "pub -t %{ids}/%i", "pub: -t: %{ids} is no column of --rows; did you mean %{id}? here are id"),
            ("id\n1\n", "pub -m %{x}-%{id}", "pub: -m: %{x} is no column of --rows; here are id"),
            ("id\n1\n", "pub -t a", "pub: --rows: nothing names a column of it; write %{id} where its cells belong"),
            (
                "t\na\nb/+\n", "pub -c 2 -t %{t}",
                "pub: -t: row 2 of --rows makes 'b/+' of it: a topic to publish to has no wildcard"
            ),
            (
                "t\na\n\"\"\n", "pub -c 2 --topic %{t}",
                "pub: --topic: row 2 of --rows makes '' of it: a topic has at least one character"
            ),
            (
                "t\na\n##\n", "sub -c 2 -t x/%{t}",
                "sub: -t: row 2 of --rows makes 'x/##' of it: + and # must be alone in their level, as in a/+/b or a/#"
            ),
            (
                "id\na\nb\na\n", "conn -c 3 --client-id c-%{id}",
                "conn: --client-id: row 3 of --rows makes 'c-a' of it: another client has that id too; put %i into it, or another column"
            ),
            (
                "id\na\nb\n", "conn -c 3 --client-id c-%{id}",
                "conn: --client-id: row 1 of --rows makes 'c-a' of it: another client has that id too; put %i into it, or another column"
            ),
        ]
    )
    func refuses(_ table: String, _ line: String, _ words: String) throws {
        let (invocation, path) = try Self.parsed(table, line)
        guard case .refused(let lines) = invocation else {
            Issue.record("\(invocation)")
            return
        }
        #expect(lines == ["clamor " + words.replacing("PATH", with: path)])
    }

    @Test(
        "what a cell makes of a topic never changes who hears whom",
        arguments: [
            (
                "s\na\nb\n", "pubsub -c 3 -t x/%{s}",
                "-t: clients 1 and 3 would write to 'x/a', and the subscribers of both would hear both; put %i into it"
            ),
            (
                "s\na\nb\na\n", "pubsub -c 3 -u %{s} -t x/%u/%s",
                "-t: clients 1 and 3 would write to 'x/a/+', and the subscribers of both would hear both; put %i into it"
            ),
            (
                "s\na\na/b\n", "pubsub -c 2 -t x/%{s}-%s",
                "-t: row 2 of --rows makes 'x/a/b-0' of it, which 'x/+' does not hear; a cell in it has no / and does not begin with $"
            ),
            (
                "s\na\na/b\n", "pubsub -c 2 --topology fan-in -t x/%{s}",
                "-t: row 2 of --rows makes 'x/a/b' of it, which 'x/+' does not hear; a cell in it has no / and does not begin with $"
            ),
            (
                "s\na\n$b\n", "pubsub -c 2 --topology shared -t %{s}/x",
                "-t: row 2 of --rows makes '$b/x' of it, which '+/x' does not hear; a cell in it has no / and does not begin with $"
            ),
        ]
    )
    func hears(_ table: String, _ line: String, _ words: String) throws {
        guard case .refused(let lines) = try Self.parsed(table, line).0 else {
            Issue.record("taken")
            return
        }
        #expect(lines == ["clamor pubsub: \(words)"])
    }

    @Test(
        "and where it does not, it is taken",
        arguments: [
            "pubsub -c 3 -t x/%{s}/%i", "pubsub -c 2 -t %{s}", "pubsub -c 3 --topology fan-in -t x/y%{s}/z",
            "pubsub -c 3 --topology fan-out -t x/%{s}", "pub -c 3 -t x/%{s}", "pubsub -c 3 -t one -u %{s}",
        ]
    )
    func isHeard(_ line: String) throws {
        guard case .run = try Self.parsed("s\na\nb\n", line).0 else {
            Issue.record("refused")
            return
        }
    }

    @Test("the schedule of two tables is not the same, wherever they lie")
    func schedule() throws {
        func hash(_ table: String) throws -> String {
            let folder = try ScratchFolder()
            let rows = try folder.write(table, to: "rows.csv")
            let text =
                "target: embedded\nduration: 1s\ngroups: { a: { rows: \"\(rows)\", publish: { topic: \"%{s}\" } } }\n"
            return try ScenarioFile(text).scenario("--seed 1").scheduleHash
        }
        #expect(try hash("s\na\n") == hash("s\na\n"))
        #expect(try hash("s\na\n") != hash("s\nb\n"))
    }

    @Test("rows that no client has are not looked at, and -n says where the first client is")
    func used() throws {
        guard case .run = try Self.parsed("t\na\nb/+\n", "pub -c 1 -t %{t}").0 else {
            Issue.record("the second row was looked at")
            return
        }
        guard case .refused(let lines) = try Self.parsed("t\na\nb/+\n", "pub -c 1 -n 1 -t %{t}").0 else {
            Issue.record("the first row was taken")
            return
        }
        #expect(lines.count == 1)
    }

    @Test("a client id may be made of a column alone")
    func identities() throws {
        guard
            let options = try Self.parsed(
                "id\na\nb\n",
                "conn -c 2 --client-id dev-%{id} -u %{id} -P pw-%{id}"
            ).0.mqtt
        else {
            Issue.record("refused")
            return
        }
        #expect(options.publisherID == "dev-%{id}")
    }
}
