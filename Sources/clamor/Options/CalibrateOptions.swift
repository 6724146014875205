import Report

/// What `clamor calibrate` is told, read and checked.
package struct CalibrateOptions: Sendable {
    /// Seconds in the place of minutes, and less sure.
    package var quick = false
    /// The file that is left.
    package var output = Calibration.defaultPath
    package var json = false
    package var quiet = false

    package init() {}
}
