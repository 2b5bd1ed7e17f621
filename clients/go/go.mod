module github.com/sluice/sluice/clients/go

go 1.22
