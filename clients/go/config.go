package analytics

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A Config holds the settings for [NewWithConfig]. They have the same meanings
// and defaults as the fields of a [Client]. There is no Size, because FlushAt
// means the same.
type Config struct {
	Endpoint     string
	FlushAt      int           // 1 to 2,500
	FlushAfter   time.Duration // not below 0
	Client       *http.Client
	Logger       Logger
	Verbose      bool
	Gzip         bool
	OnFailure    func(messages []Message, err error)
	QueueBytes   int // 32,768 and more
	MaxInFlight  int
	RetryFor     time.Duration // below 0: one attempt
	CloseTimeout time.Duration // not below 0
}

// NewWithConfig checks the settings and makes a client. The error names every
// wrong setting. Later changes of the client's fields have no effect.
func NewWithConfig(writeKey string, config Config) (*Client, error) {
	if err := config.check(writeKey); err != nil {
		return nil, err
	}
	c := &Client{
		Endpoint:     config.Endpoint,
		FlushAt:      config.FlushAt,
		FlushAfter:   config.FlushAfter,
		Client:       config.Client,
		Logger:       config.Logger,
		Verbose:      config.Verbose,
		Gzip:         config.Gzip,
		OnFailure:    config.OnFailure,
		QueueBytes:   config.QueueBytes,
		MaxInFlight:  config.MaxInFlight,
		RetryFor:     config.RetryFor,
		CloseTimeout: config.CloseTimeout,
		writeKey:     writeKey,
	}
	if _, err := c.start(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c Config) check(writeKey string) error {
	var faults []error
	if writeKey == "" {
		faults = append(faults, ErrNoWriteKey)
	}
	refuse := func(isWrong bool, format string, args ...interface{}) {
		if isWrong {
			faults = append(faults, fmt.Errorf("analytics: "+format, args...))
		}
	}
	refuse(c.FlushAt < 0 || c.FlushAt > maxBatchLength, "FlushAt is %d, it must be 1 to %d", c.FlushAt, maxBatchLength)
	refuse(c.FlushAfter < 0, "FlushAfter is %v, it must not be below 0", c.FlushAfter)
	refuse(c.CloseTimeout < 0, "CloseTimeout is %v, it must not be below 0", c.CloseTimeout)
	refuse(c.MaxInFlight < 0, "MaxInFlight is %d, it must be 1 or more", c.MaxInFlight)
	refuse(c.QueueBytes != 0 && c.QueueBytes < maxMessageBytes,
		"QueueBytes is %d, a message may need %d", c.QueueBytes, maxMessageBytes)
	if _, err := batchURL(c.Endpoint); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
