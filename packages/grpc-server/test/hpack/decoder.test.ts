import t from 'tap';
import { HpackDecoder } from '../../src/hpack/decoder.ts';
import { encodeHeaders } from '../../src/hpack/encoder.ts';

const bytes = (hex: string) => Buffer.from(hex.replaceAll(' ', ''), 'hex');

/** Three requests on one connection: RFC 7541 Appendix C.3 and, with Huffman codes, C.4. */
const requests = [
  {
    plain: '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
    huffman: '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
    extra: [],
    scheme: 'http',
    path: '/',
  },
  {
    plain: '8286 84be 5808 6e6f 2d63 6163 6865',
    huffman: '8286 84be 5886 a8eb 1064 9cbf',
    extra: [['cache-control', 'no-cache']],
    scheme: 'http',
    path: '/',
  },
  {
    plain: '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
    huffman: '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
    extra: [['custom-key', 'custom-value']],
    scheme: 'https',
    path: '/index.html',
  },
];

for (const form of ['plain', 'huffman'] as const) {
  t.test(`the request examples of RFC 7541 decode, ${form}`, async (t) => {
    const decoder = new HpackDecoder(4096);
    for (const request of requests) {
      t.strictSame(decoder.decode(bytes(request[form])), [
        [':method', 'GET'],
        [':scheme', request.scheme],
        [':path', request.path],
        [':authority', 'www.example.com'],
        ...request.extra,
      ]);
    }
  });
}

t.test('the response examples of RFC 7541 with evictions decode', async (t) => {
  // Appendix C.5, with the table size of 256 that it assumes, set by a size update.
  const decoder = new HpackDecoder(4096);
  const first =
    '3fe1 01 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d';
  t.strictSame(decoder.decode(bytes(first)), [
    [':status', '302'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ]);
  const date = ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'];
  const location = ['location', 'https://www.example.com'];
  t.strictSame(decoder.decode(bytes('4803 3330 37c1 c0bf')), [
    [':status', '307'],
    ['cache-control', 'private'],
    date,
    location,
  ]);
  t.throws(() => decoder.decode(bytes('c2')), /not in the table/, '302 was evicted');
});

t.test('malformed blocks are errors', async (t) => {
  const malformed: Record<string, string> = {
    'index 0': '80',
    'index beyond the table': 'ff ff 00',
    'number that does not end': 'ff',
    'number too large': 'ff ff ff ff ff ff ff 7f',
    'number of endless zeros': 'ff 80 80 80 80 80 80 80 80 80 00',
    'string longer than the block': '00 05 61',
    'missing value': '00 01 61',
    'Huffman padding with zeros': '00 81 fe 01 61',
    'Huffman padding of more than 7 bits': '00 82 1f ff 01 61',
    'Huffman end of string': '00 84 ff ff ff fc 01 61',
    'size update after a field': '82 20',
    'size update beyond the limit': '3f e2 1f',
  };
  for (const [name, hex] of Object.entries(malformed)) {
    t.throws(() => new HpackDecoder(4096).decode(bytes(hex)), { name: 'Error' }, name);
  }
});

t.test('a list larger than the bound is dropped and the table stays in step', async (t) => {
  const decoder = new HpackDecoder(200);
  // Inserts a field of 102 bytes and names it twice more.
  const insert = Buffer.concat([bytes('40 01 61 45'), Buffer.alloc(0x45, 'b'), bytes('be be')]);
  t.equal(decoder.decode(insert), undefined);
  t.strictSame(decoder.decode(bytes('be')), [['a', 'b'.repeat(0x45)]]);
});

t.test('a field larger than the table empties it', async (t) => {
  const decoder = new HpackDecoder(100_000);
  decoder.decode(bytes('40 01 61 01 62'));
  const long = encodeHeaders([['x', 'y'.repeat(5000)]]);
  long[0] = 0x40;
  t.equal(decoder.decode(long)?.[0]?.[1].length, 5000);
  t.throws(() => decoder.decode(bytes('be')), /not in the table/);
});

t.test('what the encoder writes decodes to the same fields', async (t) => {
  const fields = [
    [':status', '200'],
    [':status', '431'],
    ['content-type', 'application/grpc'],
    ['grpc-message', '%C3%A4'.repeat(40)],
  ] as const;
  t.strictSame(new HpackDecoder(4096).decode(encodeHeaders(fields)), fields);
});
