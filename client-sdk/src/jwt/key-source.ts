import type { JwsAlgorithm } from './algorithms.ts';
import type { WebCryptoKey } from './import-key.ts';

/** What of a JWT's header tells which key signed it. */
export interface WantedKey {
  readonly algorithm: JwsAlgorithm;
  /** `kid` of the header, when it has one. */
  readonly keyId: string | undefined;
}

/** Where the keys come from that a signature is checked with. */
export interface KeySource {
  /**
   * The keys that may have signed, best first; empty when none fits. With `reload` the source looks again where it
   * gets them from, as often as it allows itself to.
   */
  find(wanted: WantedKey, options?: { readonly reload?: boolean }): Promise<readonly WebCryptoKey[]>;
}
