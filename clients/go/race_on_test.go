//go:build race

package analytics

const (
	raceDetector = true
	loadCalls    = 200
)
