import t from 'tap';
import { readDeviceAuthorization } from '../../src/device/authorization.ts';

const answer = {
  device_code: 'd',
  user_code: 'WDJB-MJHT',
  verification_uri: 'https://as.test/device',
  verification_uri_complete: 'https://as.test/device?user_code=WDJB-MJHT',
  expires_in: 1800,
  interval: 7,
};

t.test('reads the response of RFC 8628 §3.2', (t) => {
  t.same(readDeviceAuthorization(answer, { now: 1000 }), {
    deviceCode: 'd',
    userCode: 'WDJB-MJHT',
    verificationUri: 'https://as.test/device',
    verificationUriComplete: 'https://as.test/device?user_code=WDJB-MJHT',
    expiresAt: 2800,
    intervalSeconds: 7,
  });
  t.end();
});

t.test('the default interval is five seconds, and numbers may be text', (t) => {
  const { interval: _, verification_uri_complete: __, ...rest } = answer;
  const read = readDeviceAuthorization({ ...rest, expires_in: '60' }, { now: 1000 });
  t.match(read, { intervalSeconds: 5, expiresAt: 1060 });
  t.notOk('verificationUriComplete' in read);
  t.end();
});

t.test("accepts Google's older field names", (t) => {
  const { verification_uri: _, ...rest } = answer;
  t.equal(
    readDeviceAuthorization({ ...rest, verification_url: 'https://g.test' }, { now: 0 }).verificationUri,
    'https://g.test',
  );
  t.end();
});

t.test('missing fields are named in the error', (t) => {
  for (const name of ['device_code', 'user_code', 'verification_uri', 'expires_in'] as const) {
    const read = () => readDeviceAuthorization({ ...answer, [name]: undefined }, { now: 0 });
    t.throws(read, { name: 'ParseError', message: new RegExp(`\`${name}\``) });
  }
  for (const parsed of [
    null,
    'text',
    { ...answer, interval: -1 },
    { ...answer, expires_in: 'soon' },
    { ...answer, user_code: 5 },
  ]) {
    t.throws(() => readDeviceAuthorization(parsed, { now: 0 }), { name: 'ParseError' });
  }
  t.end();
});

t.test('verification URIs must be https, or http to this machine', (t) => {
  const uris = [
    'http://as.test/device',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'as.test/device',
    'https:',
  ];
  for (const uri of uris) {
    for (const name of ['verification_uri', 'verification_uri_complete']) {
      const read = (allowInsecure: boolean) => () =>
        readDeviceAuthorization({ ...answer, [name]: uri }, { now: 0, allowInsecure });
      t.throws(read(false), { name: 'ParseError', message: new RegExp(`\`${name}\`.*https`) });
      if (uri.startsWith('http://')) t.doesNotThrow(read(true));
      else t.throws(read(true), { name: 'ParseError' }, uri);
    }
  }
  const local = readDeviceAuthorization(
    { ...answer, verification_uri: 'http://127.0.0.1:8080/d' },
    { now: 0 },
  );
  t.equal(local.verificationUri, 'http://127.0.0.1:8080/d');
  t.end();
});

t.test('control characters of the server are escaped', (t) => {
  const shown = readDeviceAuthorization(
    { ...answer, user_code: 'AB\u001b[2J\u202e', verification_uri: 'https://as.test/\u001b[31m' },
    { now: 0 },
  );
  t.equal(shown.userCode, 'AB\\u001b[2J\\u202e');
  t.equal(shown.verificationUri, 'https://as.test/\\u001b[31m');
  t.end();
});

t.test('the interval is at least a second', (t) => {
  for (const interval of [0, 0.2, '0'])
    t.equal(readDeviceAuthorization({ ...answer, interval }, { now: 0 }).intervalSeconds, 1);
  t.end();
});
