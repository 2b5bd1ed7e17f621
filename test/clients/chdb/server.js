import { unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { Session } from 'chdb'

/**
 * A server with ClickHouse's engine, started by `node server.js FOLDER`. It has the parts of ClickHouse's
 * HTTP interface that `@clickhouse/client` uses. It prints its port. Clients have to log in as `sluice` with
 * the password `a password`. `/usage` answers with the CPU time and the memory that the process has used.
 */

const [folder] = process.argv.slice(2)
const login = `Basic ${Buffer.from('sluice:a password').toString('base64')}`
const session = new Session(folder)
/** Parameters of the HTTP request. All other parameters are settings of the query. */
const ofRequest = new Set(['query', 'query_id', 'database', 'default_format', 'session_id', 'role'])
/** The last query so far. Queries run one after the other, because they share a session and its settings. */
let last = Promise.resolve()

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost')
  if (url.pathname === '/usage') {
    const { user, system } = process.cpuUsage()
    response.end(
      JSON.stringify({ cpuS: (user + system) / 1e6, rssMb: process.memoryUsage.rss() / 1024 ** 2 }),
    )
    return
  }
  const given = buffer(request)
  last = last
    .then(async () => answer(response, url.searchParams, request.headers.authorization, await given))
    .catch(() => undefined)
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`))

async function answer(response, params, authorization, body) {
  response.setHeader('x-clickhouse-query-id', params.get('query_id') ?? '')
  if (authorization !== login) {
    refuse(
      response,
      403,
      'Code: 516. DB::Exception: sluice: Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)',
    )
    return
  }
  try {
    response.end(await run(params, body))
  } catch (error) {
    refuse(response, 500, error.message.slice(Math.max(0, error.message.indexOf('Code: '))))
  }
}

function refuse(response, status, message) {
  response.statusCode = status
  response.setHeader('x-clickhouse-exception-code', /Code: (\d+)/.exec(message)?.[1] ?? '1')
  response.end(`${message} (version 26.7.3.1 (official build))`)
}

async function run(params, body) {
  for (const [name, value] of params) {
    if (ofRequest.has(name)) continue
    await session.queryAsync(`SET ${name} = '${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`)
  }
  const query = params.get('query')
  if (query === null) return (await session.queryAsync(body.toString(), { format: 'TabSeparated' })).bytes()
  // The engine reads binary data only from a file.
  const file = join(folder, `inserted-${process.pid}`)
  writeFileSync(file, body)
  try {
    const sql = query.replace(/ FORMAT RowBinary$/, ` FROM INFILE '${file}' FORMAT RowBinary`)
    return (await session.queryAsync(sql)).bytes()
  } finally {
    unlinkSync(file)
  }
}
