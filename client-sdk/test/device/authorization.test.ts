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
  t.same(readDeviceAuthorization(answer, 1000), {
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
  const read = readDeviceAuthorization({ ...rest, expires_in: '60' }, 1000);
  t.match(read, { intervalSeconds: 5, expiresAt: 1060 });
  t.notOk('verificationUriComplete' in read);
  t.end();
});

t.test("accepts Google's older field names", (t) => {
  const { verification_uri: _, ...rest } = answer;
  t.equal(
    readDeviceAuthorization({ ...rest, verification_url: 'https://g.test' }, 0).verificationUri,
    'https://g.test',
  );
  t.end();
});

t.test('missing fields are named in the error', (t) => {
  for (const name of ['device_code', 'user_code', 'verification_uri', 'expires_in'] as const) {
    const read = () => readDeviceAuthorization({ ...answer, [name]: undefined }, 0);
    t.throws(read, { name: 'ParseError', message: new RegExp(`\`${name}\``) });
  }
  for (const parsed of [
    null,
    'text',
    { ...answer, interval: -1 },
    { ...answer, expires_in: 'soon' },
    { ...answer, user_code: 5 },
  ]) {
    t.throws(() => readDeviceAuthorization(parsed, 0), { name: 'ParseError' });
  }
  t.end();
});
