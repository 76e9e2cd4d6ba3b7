// Signs in on a device without a browser: the user enters a code on another device (RFC 8628).
//   ISSUER=https://as.example CLIENT_ID=… node sign-in-on-a-device.ts
import { pollDeviceToken, startDeviceAuthorization } from '@tollgate/oauth2-client/device';
import { discoverClient } from '@tollgate/oauth2-client/discovery';

const { ISSUER = '', CLIENT_ID = '' } = process.env;

const client = await discoverClient(ISSUER, { clientId: CLIENT_ID, clientAuth: 'none' });
const device = await startDeviceAuthorization(client, { scope: 'read' });
console.log(`Open ${device.verificationUri} and enter ${device.userCode}`);
const token = await pollDeviceToken(client, device);
console.log(token.scope?.join(' ') ?? 'signed in');
