import Testing

@Suite("The size of pages") struct PageSizeTests {
    @Test("A page is smaller than 1 MB", arguments: Fixture.all)
    func size(fixture: Fixture) throws {
        #expect(try fixture.html().utf8.count < 1_000_000)
    }
}
