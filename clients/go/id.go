package analytics

import (
	"crypto/rand"
	"encoding/hex"
)

// An idSource makes random UUIDs (version 4). It asks the system for the bytes
// of many UUIDs at once, because this is much cheaper than asking for each.
type idSource struct {
	random [64 * idBytes]byte
	unused int // bytes at the end of random
}

const idBytes = 16

func (s *idSource) append(b []byte) ([]byte, error) {
	if s.unused == 0 {
		if _, err := rand.Read(s.random[:]); err != nil {
			return b, err
		}
		s.unused = len(s.random)
	}
	random := s.random[len(s.random)-s.unused:]
	s.unused -= idBytes
	return appendUUID(b, [idBytes]byte(random)), nil
}

// randomId returns a single UUID.
func randomId() (string, error) {
	var random [idBytes]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return string(appendUUID(make([]byte, 0, 36), random)), nil
}

func appendUUID(b []byte, random [idBytes]byte) []byte {
	random[6] = random[6]&0x0f | 0x40 // version 4
	random[8] = random[8]&0x3f | 0x80 // variant of RFC 9562
	var text [36]byte
	hex.Encode(text[0:], random[0:4])
	text[8] = '-'
	hex.Encode(text[9:], random[4:6])
	text[13] = '-'
	hex.Encode(text[14:], random[6:8])
	text[18] = '-'
	hex.Encode(text[19:], random[8:10])
	text[23] = '-'
	hex.Encode(text[24:], random[10:])
	return append(b, text[:]...)
}
