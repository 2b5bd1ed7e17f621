module github.com/sluice/sluice/test/clients/go/sluice

go 1.22

require github.com/sluice/sluice/clients/go v0.0.0

replace github.com/sluice/sluice/clients/go => ../../../../clients/go
