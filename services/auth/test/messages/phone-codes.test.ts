import t from 'tap';
import { getTestCode } from '../../src/messages/phone-codes.ts';
import { secondsUntilNext, tooSoon } from '../../src/messages/quotas.ts';
import { otpDigits } from '../../src/one-time-tokens/hash.ts';

t.test('test code applies to its phone, with or without plus, until it expires', (t) => {
  const codes = { smsTestOtp: { '1555': '111111', '+1666': '222222' }, smsTestOtpValidUntil: new Date(10) };
  t.equal(getTestCode('1555', codes, 9), '111111');
  t.equal(getTestCode('1666', codes, 9), '222222');
  t.equal(getTestCode('1777', codes, 9), undefined);
  t.equal(getTestCode('1555', codes, 10), undefined);
  t.equal(getTestCode('1555', { ...codes, smsTestOtpValidUntil: undefined }, 10), '111111');
  t.end();
});

t.test('code has six to ten digits, and six if the setting is out of range', (t) => {
  t.same([5, 6, 10, 11, 0, -1].map(otpDigits), [6, 6, 10, 6, 6, 6]);
  t.end();
});

t.test('seconds until the next message are rounded up', (t) => {
  t.equal(secondsUntilNext(undefined, 60_000, 0), 0);
  t.equal(secondsUntilNext(new Date(1_000), 60_000, 1_001), 60);
  t.equal(secondsUntilNext(new Date(1_000), 60_000, 60_999), 1);
  t.equal(secondsUntilNext(new Date(1_000), 60_000, 61_000), 0);
  t.equal(secondsUntilNext(new Date(1_000), 0, 1_000), 0);
  t.match(tooSoon('phone', 5), {
    code: 'over_sms_send_rate_limit',
    message: 'For security purposes, you can only request this after 5 seconds.',
    retryAfterSeconds: 5,
  });
  t.end();
});
