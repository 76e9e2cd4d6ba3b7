import { bool, int, oneOf, text } from '@tollgate/kit/settings';
import { codesByPhone, lifetime, optionalInstant, seconds, svc, textOrDefault } from './builders.ts';

const group = 'Text messages';

const webUrl = {
  pattern: /^https?:\/\/[^/?#@\s]+[^?#\s]*$/,
  form: 'an absolute URL with http or https',
};

function credential(name: string, doc: string, secret = false) {
  return text({ ...svc(name), group, default: '', secret, doc });
}

function apiUrl(name: string, vendor: string, url: string) {
  return text({ ...svc(name), group, default: url, matches: webUrl, doc: `Base URL of the ${vendor} API.` });
}

export const smsSettings = {
  smsAutoconfirm: bool({
    ...svc('SMS_AUTOCONFIRM'),
    group,
    default: false,
    doc: 'Confirm phone numbers without a code.',
  }),
  smsMaxFrequencyMs: seconds({
    ...svc('SMS_MAX_FREQUENCY'),
    group,
    default: '60s',
    doc: 'Minimum interval between two messages to a user.',
  }),
  smsOtpExpMs: lifetime({ ...svc('SMS_OTP_EXP'), group, default: '60s', doc: 'Lifetime of a code.' }),
  smsOtpLength: int({
    ...svc('SMS_OTP_LENGTH'),
    group,
    default: 6,
    doc: 'Digits of a code, from 6 to 10. Other values mean 6.',
  }),
  smsTemplate: textOrDefault({
    ...svc('SMS_TEMPLATE'),
    group,
    default: 'Your code is {{ .Code }}',
    doc: 'Template of the message.',
  }),
  smsTestOtp: codesByPhone({
    ...svc('SMS_TEST_OTP'),
    group,
    default: {},
    hidden: true,
    doc: 'Test phone numbers with fixed codes, to which no messages are sent: `4915112345678:123456`.',
  }),
  smsTestOtpValidUntil: optionalInstant({
    ...svc('SMS_TEST_OTP_VALID_UNTIL'),
    group,
    doc: 'Expiry of the test codes. Empty: no expiry.',
  }),
  smsProvider: oneOf(['', 'twilio', 'twilio_verify', 'messagebird', 'vonage', 'textlocal', 'log'], {
    ...svc('SMS_PROVIDER'),
    group,
    default: '',
    doc: 'Gateway. `twilio_verify` creates the codes and messages itself. `log` writes codes to the log, in development mode only.',
  }),
  smsTwilioAccountSid: credential('SMS_TWILIO_ACCOUNT_SID', 'Account SID of Twilio.'),
  smsTwilioAuthToken: credential('SMS_TWILIO_AUTH_TOKEN', 'Auth token of Twilio.', true),
  smsTwilioMessageServiceSid: credential(
    'SMS_TWILIO_MESSAGE_SERVICE_SID',
    'Sender: a messaging service, or a number with `+`.',
  ),
  smsTwilioContentSid: credential('SMS_TWILIO_CONTENT_SID', 'Content template for WhatsApp.'),
  smsTwilioUrl: text({
    ...svc('SMS_TWILIO_URL'),
    group,
    default: 'https://api.twilio.com',
    doc: 'Base URL of the Twilio API, which depends on the region.',
  }),
  smsTwilioVerifyAccountSid: credential('SMS_TWILIO_VERIFY_ACCOUNT_SID', 'Account SID of Twilio Verify.'),
  smsTwilioVerifyAuthToken: credential('SMS_TWILIO_VERIFY_AUTH_TOKEN', 'Auth token of Twilio Verify.', true),
  smsTwilioVerifyMessageServiceSid: credential(
    'SMS_TWILIO_VERIFY_MESSAGE_SERVICE_SID',
    'Verify service, `VA…`.',
  ),
  smsTwilioVerifyUrl: text({
    ...svc('SMS_TWILIO_VERIFY_URL'),
    group,
    default: 'https://verify.twilio.com',
    doc: 'Base URL of the Twilio Verify API.',
  }),
  smsMessagebirdAccessKey: credential('SMS_MESSAGEBIRD_ACCESS_KEY', 'Key of MessageBird.', true),
  smsMessagebirdOriginator: credential(
    'SMS_MESSAGEBIRD_ORIGINATOR',
    'Sender of MessageBird: a name or number.',
  ),
  smsMessagebirdUrl: apiUrl('SMS_MESSAGEBIRD_URL', 'MessageBird', 'https://rest.messagebird.com'),
  smsVonageApiKey: credential('SMS_VONAGE_API_KEY', 'Key of Vonage.', true),
  smsVonageApiSecret: credential('SMS_VONAGE_API_SECRET', 'Secret of Vonage.', true),
  smsVonageFrom: credential('SMS_VONAGE_FROM', 'Sender of Vonage: a name or number.'),
  smsVonageUrl: apiUrl('SMS_VONAGE_URL', 'Vonage', 'https://rest.nexmo.com'),
  smsTextlocalApiKey: credential('SMS_TEXTLOCAL_API_KEY', 'Key of Textlocal.', true),
  smsTextlocalSender: credential('SMS_TEXTLOCAL_SENDER', 'Sender of Textlocal: a registered name.'),
  smsTextlocalUrl: apiUrl('SMS_TEXTLOCAL_URL', 'Textlocal', 'https://api.textlocal.in'),
};
