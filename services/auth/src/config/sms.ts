import { bool, int, oneOf, text } from '@tollgate/kit/settings';
import {
  codesByPhone,
  life,
  optionalInstant,
  seconds,
  svc,
  textOrDefault,
  withoutEffect,
} from './builders.ts';

const group = 'Text messages';

/** Gateways of GoTrue that do not exist here: accepted while sign-in by phone is off. */
const unservedGateways = ['messagebird', 'vonage', 'textlocal'];

function credential(name: string, doc: string, secret = false) {
  return text({ ...svc(name), group, default: '', secret, doc });
}

/** Of a gateway that is not served. */
function unservedCredential(name: string, doc: string, secret = false) {
  return withoutEffect(credential(name, doc, secret));
}

/** Codes by SMS, and who delivers them. */
export const smsSettings = {
  smsAutoconfirm: bool({
    ...svc('SMS_AUTOCONFIRM'),
    group,
    default: false,
    doc: 'Users need not confirm their phone.',
  }),
  smsMaxFrequencyMs: seconds({
    ...svc('SMS_MAX_FREQUENCY'),
    group,
    default: '60s',
    doc: 'Shortest time between two to a user.',
  }),
  smsOtpExpMs: life({ ...svc('SMS_OTP_EXP'), group, default: '60s', doc: 'Life of a code.' }),
  smsOtpLength: int({
    ...svc('SMS_OTP_LENGTH'),
    group,
    default: 6,
    doc: 'Digits of a code, 6 to 10; otherwise 6.',
  }),
  smsTemplate: textOrDefault({
    ...svc('SMS_TEMPLATE'),
    group,
    default: 'Your code is {{ .Code }}',
    doc: 'Text of the message.',
  }),
  smsTestOtp: codesByPhone({
    ...svc('SMS_TEST_OTP'),
    group,
    default: {},
    doc: 'Phones that get no message, with their codes: `4915112345678:123456`.',
  }),
  smsTestOtpValidUntil: optionalInstant({
    ...svc('SMS_TEST_OTP_VALID_UNTIL'),
    group,
    doc: 'Until when they are good; for ever when empty.',
  }),
  smsProvider: oneOf(['', 'twilio', 'twilio_verify', 'log'], {
    ...svc('SMS_PROVIDER'),
    group,
    default: '',
    synonyms: Object.fromEntries(unservedGateways.map((name) => [name, '' as const])),
    notServed: unservedGateways,
    doc: 'Gateway; `twilio_verify` makes the codes and words the messages itself, `log` writes to the log, in development only.',
  }),
  smsTwilioAccountSid: credential('SMS_TWILIO_ACCOUNT_SID', 'Account of Twilio.'),
  smsTwilioAuthToken: credential('SMS_TWILIO_AUTH_TOKEN', 'Its token.', true),
  smsTwilioMessageServiceSid: credential(
    'SMS_TWILIO_MESSAGE_SERVICE_SID',
    'Its sender: a messaging service, or a number with `+`.',
  ),
  smsTwilioContentSid: credential('SMS_TWILIO_CONTENT_SID', 'Template for WhatsApp.'),
  smsTwilioUrl: text({
    ...svc('SMS_TWILIO_URL'),
    group,
    default: 'https://api.twilio.com',
    doc: 'Base URL of its API: regions have their own.',
  }),
  smsTwilioVerifyAccountSid: credential('SMS_TWILIO_VERIFY_ACCOUNT_SID', 'Account of Twilio Verify.'),
  smsTwilioVerifyAuthToken: credential('SMS_TWILIO_VERIFY_AUTH_TOKEN', 'Its token.', true),
  smsTwilioVerifyMessageServiceSid: credential(
    'SMS_TWILIO_VERIFY_MESSAGE_SERVICE_SID',
    'Its Verify service, `VA…`.',
  ),
  smsTwilioVerifyUrl: text({
    ...svc('SMS_TWILIO_VERIFY_URL'),
    group,
    default: 'https://verify.twilio.com',
    doc: 'Base URL of its API.',
  }),
  smsMessagebirdAccessKey: unservedCredential('SMS_MESSAGEBIRD_ACCESS_KEY', 'Key of MessageBird.', true),
  smsMessagebirdOriginator: unservedCredential('SMS_MESSAGEBIRD_ORIGINATOR', 'Its sender.'),
  smsVonageApiKey: unservedCredential('SMS_VONAGE_API_KEY', 'Key of Vonage.', true),
  smsVonageApiSecret: unservedCredential('SMS_VONAGE_API_SECRET', 'Its secret.', true),
  smsVonageFrom: unservedCredential('SMS_VONAGE_FROM', 'Its sender.'),
  smsTextlocalApiKey: unservedCredential('SMS_TEXTLOCAL_API_KEY', 'Key of Textlocal.', true),
  smsTextlocalSender: unservedCredential('SMS_TEXTLOCAL_SENDER', 'Its sender.'),
};
