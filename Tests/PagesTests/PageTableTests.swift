import Pages
import Testing

@Suite("A table of a page")
struct PageTableTests {
    @Test("has a caption, headers with a scope, and a dash for what is not known")
    func parts() {
        var table = PageTable("Figures <1>", ["name", "count", "never known"])
        table.add([.text("a & b"), .count(12_345), nil])
        table.add([.text("c"), nil, nil])
        let html = table.html
        #expect(html.contains("<caption>Figures &lt;1&gt;</caption>"))
        #expect(html.contains("<th scope=\"col\">count</th>"))
        #expect(html.contains("<th scope=\"row\" class=\"words\">a &amp; b</th>"))
        #expect(html.contains("<td data-v=\"12345\">12,345</td>"))
        #expect(html.contains("<td>–</td>"))
        #expect(!html.contains("never known"))
    }

    @Test("is nothing without a row, or with names alone")
    func empty() {
        #expect(PageTable("Empty", ["a"]).html.isEmpty)
        var table = PageTable("Names", ["name", "count"])
        table.add([.text("a"), nil])
        #expect(table.html.isEmpty)
    }
}
