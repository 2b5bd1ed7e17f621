//go:build !race

package analytics

const raceDetector = false
