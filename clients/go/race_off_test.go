//go:build !race

package analytics

const (
	raceDetector = false
	loadCalls    = 1000
)
