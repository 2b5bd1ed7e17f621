package analytics

import (
	"regexp"
	"strconv"
	"time"
)

// timestamps are the spellings of ISO 8601 that the gateway reads: RFC 3339, and
// a zone without a colon or with hours only, a date alone, no seconds, no zone.
var timestamps = regexp.MustCompile(`^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])` +
	`(?:[Tt ](?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$`)

// checkTimestamp refuses what the gateway would leave out. Empty stands for the
// time of the call.
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
