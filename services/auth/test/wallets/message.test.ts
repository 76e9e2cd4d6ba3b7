import t from 'tap';
import { ethereum } from '../../src/wallets/ethereum.ts';
import { parseMessage } from '../../src/wallets/message.ts';
import { solana } from '../../src/wallets/solana.ts';
import { signInMessage } from '../helpers/wallets.ts';

/** Example of EIP-55. */
const checksummed = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const key = '4Cw1koUQtqybLFem7uqhzMBznMPGARbFS4cjaYbM9RnR';

t.test('message with all fields is parsed', (t) => {
  const text = `https://example.com wants you to sign in with your Ethereum account:
${checksummed}

I accept: https://example.com/tos “déjà vu”

URI: https://example.com/login?a=1#b
Version: 1
Chain ID: 137
Nonce: 32891756
Issued At: 2026-01-01T00:00:00.123456Z
Expiration Time: 2026-01-01T02:05:00+02:00
Not Before: 2026-01-01T00:00:00Z
Request ID: a%20b
Resources:
- ipfs://bafybeiemxf5abjwjbikoz4mc3a3dla6ual3jsgpdr4cjr3oz3evfyavhwq/
- https://example.com/claim.json`;
  t.match(parseMessage(text, ethereum), {
    ok: true,
    message: {
      scheme: 'https',
      domain: 'example.com',
      address: checksummed.toLowerCase(),
      statement: 'I accept: https://example.com/tos “déjà vu”',
      uri: 'https://example.com/login?a=1#b',
      chainId: '137',
      issuedAt: new Date('2026-01-01T00:00:00.123Z'),
      expirationTime: new Date('2026-01-01T00:05:00Z'),
      notBefore: new Date('2026-01-01T00:00:00Z'),
    },
  });
  t.end();
});

t.test('fields of Solana may have any order, and no colon after Resources', (t) => {
  const text = [
    'example.com wants you to sign in with your Solana account:',
    ...[key, '', 'Version: 1', 'URI: https://example.com/', 'Issued At: 2026-01-01T00:00:00Z'],
    ...['Chain ID: solana:testnet', 'Nonce: abcdefgh', 'Resources', '- https://example.com/a'],
  ].join('\n');
  t.match(parseMessage(text, solana), {
    ok: true,
    message: { address: key, statement: '', chainId: 'solana:testnet' },
  });
  t.match(parseMessage(signInMessage('Solana', key, { statement: 'Hello' }), solana), {
    ok: true,
    message: { statement: 'Hello', chainId: '' },
  });
  t.end();
});

t.test('address of Ethereum is accepted in one case or with its checksum', (t) => {
  const lower = checksummed.toLowerCase();
  for (const form of [checksummed, lower, `0x${lower.slice(2).toUpperCase()}`])
    t.equal(ethereum.parseAddress(form), lower, form);
  for (const form of [
    checksummed.replace('Ae', 'AE'),
    lower.slice(2),
    `${lower}0`,
    lower.replace('0x', '0X'),
  ])
    t.equal(ethereum.parseAddress(form), undefined, form);
  t.same(ethereum.otherForms(lower), [checksummed]);
  t.end();
});

t.test('address of Solana is a key of 32 bytes', (t) => {
  t.equal(solana.parseAddress(key), key);
  for (const form of [key.slice(3), `${key}1`, key.replace('C', '0'), '1'.repeat(33)])
    t.equal(solana.parseAddress(form), undefined, form);
  t.end();
});

t.test('signature of personal_sign belongs to its address and text', (t) => {
  // Example in the documentation of web3.js, accounts.sign.
  const signed = {
    text: 'Some data',
    address: '0x2c7536e3605d9c16a7a3d7b1898e529396a65c23',
    signature: Buffer.from(
      'b91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd' +
        '6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a0291c',
      'hex',
    ),
  };
  t.equal(ethereum.isSigned(signed), true);
  t.equal(ethereum.isSigned({ ...signed, text: 'Some dato' }), false);
  for (const last of [0, 2, 27, 29, 255]) {
    const signature = Buffer.concat([signed.signature.subarray(0, 64), Buffer.from([last])]);
    t.equal(ethereum.isSigned({ ...signed, signature }), false, `recovery ${last}`);
  }
  const zeroOrOne = Buffer.concat([signed.signature.subarray(0, 64), Buffer.from([1])]);
  t.equal(ethereum.isSigned({ ...signed, signature: zeroOrOne }), true, 'hardware wallets');
  t.equal(ethereum.isSigned({ ...signed, signature: Buffer.alloc(65) }), false, 'zeros');
  t.end();
});

t.test('key of small order has no signatures', (t) => {
  // With it, some signatures are valid for any message in implementations that do not exclude it.
  const address = '1'.repeat(32);
  const signature = Buffer.alloc(64);
  signature.writeUInt8(1);
  for (const text of ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'])
    t.equal(solana.isSigned({ text, address, signature }), false);
  t.end();
});

t.test('text that is not a message is rejected with the reason', (t) => {
  const ethereumText = signInMessage('Ethereum', checksummed, { statement: 'Hello' });
  const cases: [text: string, problem: RegExp][] = [
    ['', /first line/],
    [ethereumText.replace('Ethereum', 'Solana'), /first line/],
    [ethereumText.replace('example.com ', 'exam ple.com '), /first line/],
    [ethereumText.replace('example.com ', 'user@example.com '), /first line/],
    [ethereumText.replace(checksummed, checksummed.toLowerCase().replace('a', 'A')), /address/],
    [ethereumText.replace('\n\nHello', '\nHello'), /empty line/],
    [ethereumText.replace('Hello\n', 'Hello'), /empty line/],
    [ethereumText.replace('Hello\n\n', ''), /empty line/],
    [ethereumText.replace('Hello', 'Hel\rlo'), /control/],
    [`${ethereumText}\n`, /not a field/],
    [`${ethereumText}\nURI: https://evil.example/`, /URI is repeated or not in order/],
    [`${ethereumText}\nOther: 1`, /not a field/],
    [`${ethereumText}\nResources\n- https://example.com`, /not a field/],
    [`${ethereumText}\nResources:\n- no URI`, /resource/],
    [ethereumText.replace(/(URI.*)\n(Version.*)/, '$2\n$1'), /not in order/],
    [ethereumText.replace('Version: 1', 'Version: 2'), /Version/],
    [ethereumText.replace('Version: 1\n', ''), /Version/],
    [ethereumText.replace(/URI.*\n/, ''), /URI/],
    [ethereumText.replace('URI: https', 'URI: \u202Ehttps'), /URI/],
    [ethereumText.replace('Chain ID: 1\n', ''), /Chain ID/],
    [ethereumText.replace('Chain ID: 1', 'Chain ID: 0x1'), /Chain ID/],
    [ethereumText.replace('Nonce: 32891757', 'Nonce: short'), /Nonce/],
    [ethereumText.replace(/\nIssued At.*/, ''), /Issued At/],
    [ethereumText.replace(/Issued At: .*/, 'Issued At: 2026-01-01'), /Issued At/],
    [`${ethereumText}\nExpiration Time: 2026-13-01T00:00:00Z`, /Expiration Time/],
    [`${ethereumText}\nRequest ID: a/b`, /Request ID/],
  ];
  for (const [text, problem] of cases) t.match(parseMessage(text, ethereum), { ok: false, problem }, text);
  const solanaText = signInMessage('Solana', key);
  t.equal(parseMessage(`${solanaText}\nChain ID: random:mainnet`, solana).ok, false);
  t.equal(parseMessage(`${solanaText}\nVersion: 1`, solana).ok, false, 'repeated');
  t.end();
});
