import { decodeHuffman, huffmanCodeLengths } from '@tollgate/grpc-server/hpack/huffman';
import t from 'tap';
import { createHeaderDecoder } from '../../http2/header-decoder.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

t.test('the Huffman code is complete: its lengths leave no gap and no overlap', async (t) => {
  t.equal(huffmanCodeLengths.length, 257);
  t.equal(
    huffmanCodeLengths.reduce((sum, bits) => sum + 2 ** -bits, 0),
    1,
  );
});

t.test('Huffman-coded text decodes as in RFC 7541 C.4 and C.6', async (t) => {
  t.equal(decodeHuffman(hex('f1e3 c2e5 f23a 6ba0 ab90 f4ff')), 'www.example.com');
  t.equal(decodeHuffman(hex('9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3')), 'https://www.example.com');
  t.equal(
    decodeHuffman(hex('d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff')),
    'Mon, 21 Oct 2013 20:13:21 GMT',
  );
});

t.test('Huffman-coded text that ends within a code is refused', async (t) => {
  t.throws(() => decodeHuffman(hex('f1e3 c2e5 f23a 6ba0 ab90 f400')), /ends within a code/);
  t.throws(() => decodeHuffman(hex('ffff ffff')), /end-of-string|ends within/);
});

t.test('responses decode as in RFC 7541 C.6, evictions from a table of 256 bytes included', async (t) => {
  const { decode } = createHeaderDecoder();
  // The table size update (3f e1 01) comes first; the RFC agrees on 256 bytes elsewhere.
  const first = hex(
    `3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
     2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`.replaceAll('\n', ''),
  );
  t.same(decode(first), { httpStatus: '302' });
  t.same(decode(hex('4883 640e ffc1 c0bf')), { httpStatus: '307' });
  // 0xc1 now names what was 0xc0 before: a remembered block would be wrong.
  t.same(decode(hex('88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c0')), {
    httpStatus: '200',
  });
});

t.test('the same bytes decode anew once the table has changed', async (t) => {
  const { decode } = createHeaderDecoder();
  const insert = (value: string) =>
    Buffer.concat([
      hex('40 0b'),
      Buffer.from('grpc-status'),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]);
  decode(insert('0'));
  t.same(decode(hex('be')), { grpcStatus: '0' });
  t.same(decode(hex('be')), { grpcStatus: '0' });
  decode(insert('14'));
  t.same(decode(hex('be')), { grpcStatus: '14' });
});

t.test('blocks that are no HPACK are refused', async (t) => {
  const { decode } = createHeaderDecoder();
  t.throws(() => decode(hex('ff ff ff ff ff ff')), /number that is too large/);
  t.throws(() => decode(hex('c0')), /field 64, which does not exist/);
  t.throws(() => decode(hex('00 05 61')), /ends too early/);
});
