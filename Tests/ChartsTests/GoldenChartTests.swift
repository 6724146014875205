import Charts
import Testing

@Suite struct GoldenChartTests {
    @Test("A chart has the same text each time, wide and narrow", arguments: SampleCharts.all)
    func golden(_ sample: SampleCharts.Sample) throws {
        for (width, name) in [(960.0, "wide"), (344, "narrow")] {
            let text = sample.svg(width)
            #expect(text == sample.svg(width))
            try Golden.check(text, "\(sample.testDescription)-\(name).svg")
        }
    }

    @Test("A chart has no colour of its own: the page's stylesheet has them", arguments: SampleCharts.all)
    func noColours(_ sample: SampleCharts.Sample) {
        let text = sample.svg(960)
        for attribute in ["fill=", "stroke=", "style=", "color", "#"] { #expect(!text.contains(attribute)) }
    }

    @Test("A chart needs no identifier, which two charts of a page would share", arguments: SampleCharts.all)
    func noIdentifiers(_ sample: SampleCharts.Sample) {
        #expect(!sample.svg(960).contains(" id="))
    }
}
