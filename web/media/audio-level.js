/** The loudness of audio by its samples. */

/** Peaks from here on are cut off by the converter, in full scale. */
const CLIPPING = 0.985;
export const SILENT_DECIBELS = -60;

/**
 * @param {Iterable<Float32Array>} channels Newest samples of each channel.
 * @returns {{decibels: number, isClipping: boolean}} The peak of the loudest channel, below full scale: mixed with a silent one,
 *   a channel that is cut off would seem to be half as loud.
 */
export function levelOf(channels) {
  let peak = 0;
  for (const samples of channels) for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return { decibels: Math.max(SILENT_DECIBELS, 20 * Math.log10(peak || 1e-9)), isClipping: peak >= CLIPPING };
}
