package analytics

import (
	"regexp"
	"strconv"
	"time"
)

// timestamps matches the forms of ISO 8601 that the gateway reads. These are
// RFC 3339, and forms in which the zone has no colon or only hours, or in which
// the seconds, the zone or the whole time is missing.
var timestamps = regexp.MustCompile(`^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])` +
	`(?:[Tt ](?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$`)

// checkTimestamp refuses a timestamp for which the gateway would leave the
// message out. An empty text is accepted and means the time of the call.
func checkTimestamp(text string) error {
	if text == "" {
		return nil
	}
	parts := timestamps.FindStringSubmatch(text)
	if parts == nil {
		return ErrTimestamp
	}
	year, _ := strconv.Atoi(parts[1])
	month, _ := strconv.Atoi(parts[2])
	day, _ := strconv.Atoi(parts[3])
	if time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return ErrTimestamp // no such day, like February 30
	}
	return nil
}
