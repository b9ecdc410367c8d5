"""The Black–Scholes price of a call option and its Greeks: each is a derivative, and none is written down.

Run it with `python examples/black_scholes.py`: the price, delta, gamma, vega and theta beside the closed forms.
"""

import gradwalk.math as math
from gradwalk import grad, value_and_grad

OPTION = {"spot": 100.0, "strike": 105.0, "rate": 0.03, "volatility": 0.2, "years": 0.75}


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def call_price(spot, strike, rate, volatility, years):
    spread = volatility * math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    return spot * normal_cdf(d1) - strike * math.exp(-rate * years) * normal_cdf(d1 - spread)


def greeks(option):
    """By differentiation; theta is the loss of value as time passes, so it is minus the derivative by `years`."""
    price, (delta, vega, by_years) = value_and_grad(call_price, argnums=("spot", "volatility", "years"))(**option)
    gamma = grad(grad(call_price, argnums="spot"), argnums="spot")(**option)
    return {"price": price, "delta": delta, "gamma": gamma, "vega": vega, "theta": -by_years}


def closed_forms(spot, strike, rate, volatility, years):
    """What the textbooks derive by hand."""
    spread = volatility * math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    density = math.exp(-0.5 * d1 * d1) / math.sqrt(2.0 * math.pi)
    discounted = strike * math.exp(-rate * years)
    return {
        "price": spot * normal_cdf(d1) - discounted * normal_cdf(d1 - spread),
        "delta": normal_cdf(d1),
        "gamma": density / (spot * spread),
        "vega": spot * density * math.sqrt(years),
        "theta": -spot * density * volatility / (2.0 * math.sqrt(years)) - rate * discounted * normal_cdf(d1 - spread),
    }


if __name__ == "__main__":
    exact = closed_forms(**OPTION)
    print("           differentiated        closed form")
    for name, number in greeks(OPTION).items():
        print(f"{name:<6} {number:>18.13f} {exact[name]:>18.13f}")
