/**
 * A self-signed certificate and its private key, for the one server of the demo that no request may reach.
 * Both are public and protect nothing. The certificate is valid for 127.0.0.1 from 2020 to 2120, so its only
 * fault is that it is self-signed.
 */
export const selfSigned = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgSVnwGT8FbEDMpbe5
Nl1GizAF4gxZyUJy3JEk9LPuOsChRANCAAR31RqSB9H9QW9U1HlDHt52rCT7i1Uy
vJQAwE9bMoc8aDJesMz03QabVoZyqn4YIQi+XqmAG/e40kWkBir5w892
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBgjCCASigAwIBAgIBATAKBggqhkjOPQQDAjAjMSEwHwYDVQQDDBhTbHVpY2Ug
ZGVtbywgc2VsZi1zaWduZWQwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAw
MDBaMCMxITAfBgNVBAMMGFNsdWljZSBkZW1vLCBzZWxmLXNpZ25lZDBZMBMGByqG
SM49AgEGCCqGSM49AwEHA0IABHfVGpIH0f1Bb1TUeUMe3nasJPuLVTK8lADAT1sy
hzxoMl6wzPTdBptWhnKqfhghCL5eqYAb97jSRaQGKvnDz3ajSzBJMBoGA1UdEQQT
MBGHBH8AAAGCCWxvY2FsaG9zdDAMBgNVHRMBAf8EAjAAMB0GA1UdDgQWBBQWM3ay
U6oxGM/CIWwy382a3rlYQzAKBggqhkjOPQQDAgNIADBFAiEAyfO9jTCGymHwhiTp
v6owx0cdkZHrFJO2YcyBSrz/U0QCIF4XtRdO5Nj+ZWDDcPI9Rzd41Fc5uQk5ce+4
vqf2SCWS
-----END CERTIFICATE-----
`,
}
