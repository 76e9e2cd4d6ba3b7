/** How secrets are masked in debug output, inspection and messages. */
export type RedactOptions = {
  /** Written in their place. Default `[FILTERED]`. */
  readonly label?: string;
  /** Parameter and key names whose values are masked, beside the built-in ones. */
  readonly keys?: readonly string[];
};
