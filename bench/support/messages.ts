/**
 * Makes the messages that benchmarks deliver. They are numbered, the same in every process, and of equal
 * length.
 */

/** The value of the header `source-id` of the records. */
export const sourceId = 'shop'

/** The number of bytes of the value of a record. */
export const messageBytes = 1_024

/** The text before the id in a message. It is the same in a producer's spelling and in the canonical one. */
export const idMarker = '"messageId":"'

/** The length of a `messageId`. Its last 12 characters are the number of the message in decimal digits. */
export const idCharacters = 36

const users = 5_000
const startMs = Date.UTC(2026, 0, 1)

/**
 * The products with their prices in cents. As in real shops, one name needs an escape in JSON, and one isn't
 * ASCII.
 */
const products = [
  ['Monopoly: 3rd Edition', 'Games', 1_999],
  ['UNO Card Game', 'Games', 850],
  ['Trail Running Shoes', 'Shoes', 11_900],
  ['Merino Base Layer', 'Clothes', 6_495],
  ['Enamel Mug 350 ml', 'Kitchen', 1_290],
  ['Café Crème 250 g', 'Kitchen', 749],
  ['Monitor 27" IPS', 'Office', 24_900],
  ['Desk Lamp', 'Office', 3_950],
  ['Notebook A5', 'Office', 575],
  ['Travel Adapter', 'Travel', 1_825],
] as const

/** Returns the user of message `index`, which is also the key of its record. */
export function userIdOf(index: number): string {
  return `user-${String(hash(index, 1) % users).padStart(5, '0')}`
}

/**
 * Returns message `index` as an upstream service writes it, as a Segment `track` call of `messageBytes`
 * bytes.
 */
export function messageAt(index: number): Buffer {
  const at = new Date(startMs + index).toISOString()
  const orderId = `50314b8e9bcf${hash(index, 2).toString(16).padStart(8, '0')}`
  const lines = [productLine(index, 3), productLine(index, 4)]
  const totalCents = lines.reduce((sum, { price, quantity }) => sum + Math.round(price * 100) * quantity, 0)
  const message = {
    type: 'track',
    messageId: messageIdOf(index),
    userId: userIdOf(index),
    anonymousId: `507f191e-810c-4197-9de8-${hash(index, 5).toString(16).padStart(12, '0')}`,
    event: 'Order Completed',
    timestamp: at,
    context: {
      ip: `203.0.113.${hash(index, 6) % 256}`,
      library: { name: 'analytics-node', version: '2.1.0' },
      locale: 'en-GB',
      page: { path: '/checkout', title: 'Checkout', url: 'https://shop.example/checkout' },
      userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0',
    },
    properties: {
      checkout_id: `fksdjfsdjfisjf9sdfjsd9f${index % 10}`,
      order_id: orderId,
      total: totalCents / 100,
      tax: Math.round(totalCents / 6) / 100,
      coupon: index % 5 === 0 ? null : 'hasbros',
      currency: 'EUR',
      products: lines,
      note: '',
    },
    integrations: { All: true },
  }
  const missing = messageBytes - Buffer.byteLength(JSON.stringify(message))
  message.properties.note = 'Please ring twice. '.repeat(20).slice(0, missing)
  return Buffer.from(JSON.stringify(message))
}

function messageIdOf(index: number): string {
  const part = hash(index, 7).toString(16).padStart(8, '0')
  return `${part}-${part.slice(0, 4)}-4${part.slice(1, 4)}-8${part.slice(5, 8)}-${String(index).padStart(12, '0')}`
}

function productLine(index: number, salt: number) {
  const pick = hash(index, salt)
  const [name, category, cents] = products[pick % products.length] ?? products[0]
  return {
    product_id: pick.toString(16).padStart(8, '0'),
    sku: `G-${pick % 1_000}`,
    name,
    category,
    price: cents / 100,
    quantity: 1 + (pick % 3),
  }
}

/**
 * Returns 32 bits that look random, and are always the same for the same arguments (the finisher of
 * MurmurHash3).
 */
function hash(index: number, salt: number): number {
  let bits = Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(salt, 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
