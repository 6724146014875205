import Charts
import Testing

@Suite struct SVGTextTests {
    @Test("Characters with a meaning in markup are escaped")
    func escapes() {
        #expect(escapedMarkup(#"<a b="c">&'d'"#) == "&lt;a b=&quot;c&quot;&gt;&amp;&#39;d&#39;")
    }
}
