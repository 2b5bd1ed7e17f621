import { shell } from './snippets.ts'

/** How the signature in a header comes about, and a command for a shell that computes it. */
export type SignatureCheck = { readonly header: string; readonly of: string; readonly command: string }

type SignedRequest = {
  readonly headers: readonly { readonly name: string; readonly value: string | null }[]
}

/** Says for each signature of a request how to compute it (docs/verifying-signatures.md). */
export function checksOf({ headers }: SignedRequest, body: string): readonly SignatureCheck[] {
  const found = (name: string) => headers.find((one) => one.name.toLowerCase() === name)
  const own = found('x-signature')
  const standard = found('webhook-signature')
  const id = found('webhook-id')?.value
  return [
    ...(own === undefined
      ? []
      : [
          {
            header: own.name,
            of: 'is the HMAC-SHA1 of the body, in hexadecimal digits.',
            command: `printf %s ${shell(body)} | openssl dgst -sha1 -hmac "$SECRET"`,
          },
        ]),
    ...(standard === undefined || id === undefined || id === null
      ? []
      : [
          {
            header: standard.name,
            of: 'is v1, and the HMAC-SHA256 of the id, the time and the body with dots between them, in base64. Take the time from the header webhook-timestamp. The key of a secret that begins with whsec_ is the rest of it, decoded from base64.',
            command: `TIMESTAMP=…
KEY=$(case $SECRET in whsec_*) printf %s "\${SECRET#whsec_}" | base64 -d ;; *) printf %s "$SECRET" ;; esac | od -An -tx1 | tr -d ' \\n')
printf %s ${shell(`${id}.`)}"$TIMESTAMP".${shell(body)} | openssl dgst -sha256 -mac HMAC -macopt hexkey:"$KEY" -binary | base64`,
          },
        ]),
  ]
}
