// Signs in on a device without a browser: the user types a code on another one (RFC 8628).
//   SITE=https://as.example CLIENT_ID=… node sign-in-on-a-device.ts
import { Client } from '@tollgate/oauth2-client';
import { pollDeviceToken, startDeviceAuthorization } from '@tollgate/oauth2-client/device';

const { SITE = '', CLIENT_ID = '' } = process.env;

const client = new Client({
  clientId: CLIENT_ID,
  site: SITE,
  clientAuth: 'none',
  deviceAuthorizationEndpoint: 'oauth/device_authorization',
});
const device = await startDeviceAuthorization(client, { scope: 'read' });
console.log(`Open ${device.verificationUri} and enter ${device.userCode}`);
const token = await pollDeviceToken(client, device);
console.log(token.scope?.join(' ') ?? 'signed in');
