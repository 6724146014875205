import Report

/// The options of `clamor calibrate`, read and checked.
package struct CalibrateOptions: Sendable, HasResults, OptionsRoot {
    package static let usual = Self()

    /// Takes seconds instead of minutes, with less certainty.
    package var quick = false
    /// The file that is left.
    package var output = Calibration.defaultPath
    package var results = ResultOptions()
}
