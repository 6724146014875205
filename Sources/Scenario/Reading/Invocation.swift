/// The action that a command line requests.
package enum Invocation: Sendable {
    case run(ScenarioOptions)
    /// A scenario several times.
    case series(SeriesOptions)
    /// One over many machines.
    case coordinate(CoordinateOptions)
    /// Servers of this host, beside a run over many machines.
    case watch(WatchOptions)
    case decode(DecodeOptions)
    case broker(BrokerOptions)
    case proxy(ProxyOptions)
    case report(ReportOptions)
    case compare(CompareOptions)
    case trend(TrendOptions)
    case merge(MergeOptions)
    case capacity(CapacityOptions)
    case plan(FleetPlanOptions)
    case calibrate(CalibrateOptions)
    case doctor(DoctorOptions)
    /// A file to begin with.
    case draft(Draft)
    /// Help, or the version: for stdout.
    case text(String)
    /// One line for each problem, for stderr; exit 64.
    case refused([String])
    /// The problems of a scenario file, one line each with its place, for stderr; exit 65.
    case wrong([String])
}
